#include "skein/launch/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;

using testing::HasSubstr;

std::string run(const std::vector<std::string>& command, std::string_view input = "") {
  return run_program(command, input, "install it");
}

TEST(RunProgram, GivesInputAndReturnsWhatIsPrinted) {
  const std::string long_input(1 << 20, 'x');
  EXPECT_EQ(run({"cat"}, long_input + "\n\n"), long_input);
  EXPECT_EQ(run({"printf", "%s|", "a b", "$HOME"}), "a b|$HOME|");
}

TEST(RunProgram, TellsWhyThereIsNoAnswer) {
  EXPECT_THAT(error_of([] { run({"no-such-program"}); }),
              HasSubstr("no-such-program is not on this machine: install it"));
  EXPECT_THAT(error_of([] { run({"sh", "-c", "exit 3"}); }), HasSubstr("sh ended with 3"));
  EXPECT_THAT(error_of([] {
                run({"sh", "-c", "kill -9 $$"});
              }),
              HasSubstr("sh was ended by signal 9"));
}

}  // namespace
}  // namespace skein
