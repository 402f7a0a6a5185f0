#include "skein/base/ending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein {
namespace {

using testing::UnorderedElementsAre;

constexpr int kNumEndings = static_cast<int>(Ending::kRefused) + 1;
constexpr int kNumErrors = static_cast<int>(ErrorCode::kInternal) + 1;

TEST(Ending, EachHasAWordOfItsOwn) {
  for (int i = 0; i < kNumEndings; ++i) {
    const auto ending = static_cast<Ending>(i);
    EXPECT_EQ(ending_named(ending_name(ending)), ending);
  }
  EXPECT_STREQ(ending_name(Ending::kStoppedEarly), "stopped early");
  EXPECT_THROW(ending_named("machine"), Error);
}

TEST(Ending, IsAskedForAConsequenceOrACause) {
  for (int i = 1; i < kNumEndings; ++i) {
    const auto ending = static_cast<Ending>(i);
    EXPECT_EQ(was_asked_for(ending) + is_cause(ending) + is_loss_of_machine(ending_name(ending)), 1)
        << ending_name(ending);
    if (is_fatal(ending)) {
      EXPECT_TRUE(is_cause(ending)) << ending_name(ending);
    }
  }
}

TEST(Ending, OnlyThatOfAWrongConfigurationHasTheCodeOfUsage) {
  for (int i = 0; i < kNumErrors; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    const int expected = code == ErrorCode::kUsage ? kExitUsage : kExitFailed;
    EXPECT_EQ(exit_code_of(Error(code, "")), expected) << i;
    EXPECT_EQ(exit_code_of(ending_of(code, /*is_first=*/false)), expected) << i;
  }
}

TEST(Ending, FollowsFromTheExitCodeWhereAWorkerReportsNothing) {
  for (const Ending ending : {Ending::kFinished, Ending::kStopped, Ending::kRegrouped,
                              Ending::kCrashed, Ending::kRefused}) {
    EXPECT_EQ(ending_of_exit(exit_code_of(ending)), ending) << ending_name(ending);
  }
  EXPECT_EQ(ending_of_exit(134), Ending::kCrashed);
}

TEST(Ending, AFolderThatIsHeldIsFatalOnlyAtTheFirstStart) {
  EXPECT_TRUE(is_fatal(ending_of(ErrorCode::kBusy, /*is_first=*/true)));
  EXPECT_EQ(ending_of(ErrorCode::kBusy, /*is_first=*/false), Ending::kNoStorage);
  EXPECT_EQ(ending_of(ErrorCode::kPeerLost, /*is_first=*/true), Ending::kLostPeer);
}

TEST(Ending, StorageThatFailsComesAgainOnlyBeforeAnyStep) {
  EXPECT_TRUE(comes_again(Ending::kNoStorage, 0));
  EXPECT_FALSE(comes_again(Ending::kNoStorage, 1));
  EXPECT_TRUE(comes_again(Ending::kHung, 1));
  EXPECT_FALSE(comes_again(Ending::kKilled, 0));
}

// The series that Prometheus has from the beginning.
TEST(Ending, CausesOfARestartAreThoseOfTheEvents) {
  EXPECT_THAT(
      restart_causes(),
      UnorderedElementsAre("crashed", "killed", "no memory", "hung", "cut off", "no storage",
                           "lost peer", "machine", "not finite", "regrouped", "wrong bits"));
}

TEST(Ending, ARefusalIsNoFailureOfTheRun) {
  EXPECT_TRUE(is_refusal(ErrorCode::kBusy));
  EXPECT_TRUE(is_mistake(ErrorCode::kBusy));
  EXPECT_FALSE(is_refusal(ErrorCode::kInvalid));
  EXPECT_TRUE(is_mistake(ErrorCode::kInvalid));
  for (const ErrorCode code : {ErrorCode::kPeerLost, ErrorCode::kInternal, ErrorCode::kIo}) {
    EXPECT_FALSE(is_mistake(code));
  }
}

}  // namespace
}  // namespace skein
