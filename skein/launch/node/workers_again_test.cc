// Workers of generation after generation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers_testing.h"

namespace skein {
namespace {

using test::Workers;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(Workers, AreStartedAgainAfterOneWasKilled) {
  WorkerLaunch options = launch("killed once", 3);
  options.membership.max_restarts = 1;
  EXPECT_EQ(run_workers(options), 0);
  EXPECT_NE(trace("generation-1-0"), trace("generation-2-0"));  // they cannot meet those before
  EXPECT_EQ(trace("generation-2-0"), trace("generation-2-2"));
  EXPECT_TRUE(fs::is_empty(traces_ / "rendezvous"));
}

TEST_F(Workers, TheProcessesOfSurvivorsGoOn) {
  testing::internal::CaptureStderr();
  WorkerLaunch options = launch("one of three is lost twice", 3);
  options.membership.max_restarts = 1;
  EXPECT_EQ(run_workers(options), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("generation 3 of rank 0"));
  for (const char* rank : {"0", "2"}) {
    EXPECT_THAT(trace(std::string("pid-1-") + rank), Not(""));
    EXPECT_EQ(trace(std::string("pid-1-") + rank), trace(std::string("pid-2-") + rank));
    EXPECT_EQ(trace(std::string("pid-1-") + rank), trace(std::string("pid-3-") + rank));
  }
  EXPECT_NE(trace("pid-1-1"), trace("pid-2-1"));
  EXPECT_THAT(trace("logs/rank-00002.log"),
              AllOf(HasSubstr("generation 2 of rank 2"), HasSubstr("generation 3 of rank 2")));
}

TEST_F(Workers, OneThatHangsShowsItsStacksAndIsKilled) {
  WorkerLaunch options = launch("hangs once", 2);
  options.membership.max_restarts = 1;
  options.hang = 1000;
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_workers(options), 0);
  const std::string said =
      testing::internal::GetCapturedStderr() + testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("rank 1 made no progress for 1 s after step 7"));
  EXPECT_THAT(trace("logs/rank-00001.log"),
              AllOf(HasSubstr("stack of thread "), HasSubstr("pause")));
}

TEST_F(Workers, OneThatWaitsWithADeadlineOfItsOwnDoesNotHang) {
  WorkerLaunch options = launch("waits for a peer", 2);
  options.hang = 500;
  EXPECT_EQ(run_workers(options), 0);
}

TEST_F(Workers, TheSameCrashThreeTimesEndsTheRun) {
  WorkerLaunch options = launch("crashes every time", 2);
  options.membership.max_restarts = 100;
  options.membership.first_backoff = 10;
  try {
    run_workers(options);
    FAIL() << "it went on";
  } catch (const WorkerError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("rank 1 was killed by signal 6 (SIGABRT)"),
                      HasSubstr("the same failure after the same step 3 times in a row")));
  }
  EXPECT_THAT(trace("generation-3-1"), Not(""));
  EXPECT_THAT(trace("generation-4-1"), "");
}

TEST_F(Workers, CrashesBetweenWhichStepsAreDoneDoNotEndTheRun) {
  WorkerLaunch options = launch("crashes at other steps", 2);
  options.membership.max_restarts = 1;  // in a row that brought no new step
  EXPECT_EQ(run_workers(options), 0);
}

TEST_F(Workers, WhatWouldComeAgainEndsTheRunAtOnce) {
  WorkerLaunch options = launch("not finite", 2);
  options.membership.max_restarts = 100;
  try {
    run_workers(options);
    FAIL() << "it went on";
  } catch (const WorkerError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFinite);
    EXPECT_THAT(error.what(), HasSubstr("rank 1 failed: step 8: the loss is nan (log: "));
  }
  EXPECT_THAT(trace("generation-2-1"), "");
}

}  // namespace
}  // namespace skein
