#include "skein/base/threads/call_within.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace skein {
namespace {

TEST(CallWithin, ReturnsWhatTheCallDoes) {
  EXPECT_EQ(call_within<int>(60, [] { return 7; }), 7);
  EXPECT_EQ(call_within<int>(0, [] { return 8; }), 8);
  EXPECT_THROW(call_within<int>(60, []() -> int { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_FALSE(has_given_up_calls());
}

// In a process of its own, which a thread that never ends may not leave as any other does.
TEST(CallWithinDeathTest, GivesUpACallThatHangs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const auto result = call_within<int>(0.05, [] {
          while (true) ::pause();
          return 0;
        });
        ::_exit(!result.has_value() && has_given_up_calls() ? 3 : 1);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace skein
