#include "skein/launch/jobs/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

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

// What this program ignores, others do not expect: sbatch under `ulimit -f` ends as it always does.
TEST(RunProgram, GivesSignalsBack) {
  const auto size = std::signal(SIGXFSZ, SIG_IGN), pipe = std::signal(SIGPIPE, SIG_IGN);
  EXPECT_THAT(error_of([] {
                run({"sh", "-c", "kill -XFSZ $$"});
              }),
              HasSubstr("sh was ended by signal 25"));
  EXPECT_THAT(error_of([] {
                run({"sh", "-c", "kill -PIPE $$"});
              }),
              HasSubstr("sh was ended by signal 13"));
  std::signal(SIGXFSZ, size);
  std::signal(SIGPIPE, pipe);
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
