#include "skein/launch/node/worker_failure.h"

#include <gtest/gtest.h>

#include <csignal>

namespace skein {
namespace {

WorkerFailure failure_of(int status, const std::optional<Error>& report = {},
                         bool out_of_memory = false) {
  return worker_failure(3, status, report, "logs/rank-3.log", out_of_memory, /*is_first=*/true);
}
int exited(int code) { return code << 8; }

TEST(WorkerFailure, SaysWhatTheStatusAndTheReportSay) {
  EXPECT_EQ(failure_of(SIGKILL).ending, Ending::kKilled);
  EXPECT_EQ(failure_of(SIGKILL, {}, /*out_of_memory=*/true).ending, Ending::kOutOfMemory);
  EXPECT_EQ(failure_of(SIGSEGV).ending, Ending::kCrashed);
  EXPECT_EQ(failure_of(SIGSEGV).code, ErrorCode::kPeerLost);
  EXPECT_FALSE(failure_of(SIGSEGV).lost_peer());

  const WorkerFailure silent = failure_of(exited(kExitUsage));
  EXPECT_EQ(silent.ending, Ending::kRefused);
  EXPECT_EQ(silent.code, ErrorCode::kUsage);
  EXPECT_FALSE(silent.told);
  EXPECT_EQ(silent.message,
            "rank 3 ended with exit code 2 without saying why (log: logs/rank-3.log)");
  EXPECT_EQ(failure_of(exited(kExitFailed)).code, ErrorCode::kInternal);

  const WorkerFailure told = failure_of(exited(kExitFailed), Error(ErrorCode::kNoSpace, "full"));
  EXPECT_EQ(told.ending, Ending::kNoStorage);
  EXPECT_TRUE(told.told);
  EXPECT_TRUE(failure_of(exited(1), Error(ErrorCode::kPeerLost, "gone")).lost_peer());
}

TEST(GenerationFailure, TheFirstCauseHoldsAndALostPeerIsNone) {
  const WorkerFailure lost = {.rank = 0, .ending = Ending::kLostPeer};
  const WorkerFailure crashed = {.rank = 1, .ending = Ending::kCrashed};
  const WorkerFailure killed = {.rank = 2, .ending = Ending::kKilled};
  GenerationFailure failure;
  EXPECT_EQ(failure.of(1), nullptr);
  failure.add(lost, 1);
  EXPECT_EQ(failure.of(1)->rank, 0);
  failure.add(crashed, 1);
  failure.add(killed, 1);
  EXPECT_EQ(failure.of(1)->rank, 1);
  EXPECT_EQ(failure.of(2), nullptr);
  failure.add(lost, 2);
  EXPECT_EQ(failure.of(2)->rank, 0);
}

TEST(GenerationFailure, IsAsOldAsItsFirstSign) {
  GenerationFailure failure;
  EXPECT_EQ(failure.take_age(100), 0);
  failure.notice(100);
  failure.notice(150);
  EXPECT_EQ(failure.take_age(170), 70);
  EXPECT_EQ(failure.take_age(180), 0);
}

}  // namespace
}  // namespace skein
