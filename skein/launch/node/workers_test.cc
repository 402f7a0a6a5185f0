// The workers run this test program again: only the disabled test, which an environment variable
// tells what to do and where to leave traces.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "skein/base/files/file.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/launch/node/stacks.h"
#include "skein/launch/node/worker_failure.h"
#include "tests/workers_testing.h"

namespace skein {
namespace {

using test::kAct;
using test::kTraces;
using test::sleep_ms;
using test::Workers;

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

[[noreturn]] void wait_for_ever() {
  while (true) ::pause();
}

// Blocks the stop signals, reports that it is ready, and waits for one.
int wait_to_be_stopped(const RankInfo& rank_info, const fs::path& traces) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  write_file_atomic(traces / fmt::format("ready-{}", rank_info.rank), std::to_string(::getpid()));
  int signal = 0;
  sigwait(&signals, &signal);
  write_file_atomic(traces / fmt::format("signal-{}", rank_info.rank), std::to_string(signal));
  return 75;
}

int act(const std::string& name, const RankInfo& rank_info, const fs::path& traces) {
  const int rank = rank_info.rank;
  if (name == "environment") {
    const char* threads = std::getenv("OMP_NUM_THREADS");
    write_file_atomic(
        traces / fmt::format("place-{}", rank),
        fmt::format("{} of {}, {} of {}, {} threads, {}", rank, rank_info.size,
                    rank_info.local_rank, rank_info.local_size, threads, rank_info.start_id));
    fmt::print("out of rank {}\n", rank);
    fmt::print(stderr, "err of rank {}\n", rank);
    return 0;
  }
  if (name == "stop") return wait_to_be_stopped(rank_info, traces);
  if (name == "stop early") {
    if (rank == 0) {
      write_file_atomic(traces / "ready-0", "x");
      wait_for_ever();
    }
    wait_to_be_stopped(rank_info, traces);
    fail(ErrorCode::kPeerLost, "rank 0 is gone");
  }
  if (name == "all wrong") fail(ErrorCode::kUsage, "the mesh does not fit");
  if (name == "one throws") {
    if (rank == 3) fail(ErrorCode::kInvalid, "the corpus is torn");
    wait_for_ever();
  }
  if (name == "consequence first") {  // other ranks notice the loss of rank 3 before its report
    if (rank < 3) fail(ErrorCode::kPeerLost, "rank 3 is gone");
    sleep_ms(300);
    throw std::runtime_error("the root of it");
  }
  if (name == "one hangs") {
    if (rank < 3) fail(ErrorCode::kPeerLost, "all-reduce of dp: rank 3 did not arrive");
    ::raise(SIGSTOP);
  }
  if (name == "one is killed") {
    if (rank == 2) ::raise(SIGKILL);
    sleep_ms(50);
    fail(ErrorCode::kPeerLost, "rank 2 is gone");
  }
  if (name == "one leaves") {
    if (rank == 1) ::_exit(3);
    wait_for_ever();
  }
  if (name == "stubborn" || name == "one fails, the other is stubborn") {
    ::signal(SIGTERM, SIG_IGN);
    write_file_atomic(traces / fmt::format("ready-{}", rank), std::to_string(::getpid()));
    if (name == "stubborn" || rank > 0) wait_for_ever();
    while (!fs::exists(traces / "ready-1")) sleep_ms(5);
    fail(ErrorCode::kIo, "the disk is gone");
  }
  const bool first = rank_info.generation == 1;
  write_file_atomic(traces / fmt::format("generation-{}-{}", rank_info.generation, rank),
                    rank_info.start_id);
  if (name == "killed once") {
    if (first && rank == 1) ::raise(SIGKILL);
    if (first) wait_for_ever();
    return 0;
  }
  if (name == "one of three is lost twice") {
    write_file_atomic(traces / fmt::format("pid-{}-{}", rank_info.generation, rank),
                      std::to_string(::getpid()));
    fmt::print(stderr, "generation {} of rank {}\n", rank_info.generation, rank);
    if (rank_info.generation == 3) return 0;
    ::signal(SIGTERM, SIG_IGN);  // as training does, in its way
    heartbeat::reach_step(rank_info.generation);
    const fs::path others = traces / fmt::format("waits-{}-", rank_info.generation);
    if (rank == 1) {
      while (!fs::exists(others.string() + "0") || !fs::exists(others.string() + "2")) sleep_ms(5);
      ::raise(SIGKILL);
    }
    write_file_atomic(others.string() + std::to_string(rank), "x");
    sleep_ms(100);
    fail(ErrorCode::kPeerLost, "rank 1 is gone");
  }
  if (name == "hangs once") {
    heartbeat::reach_step(7);
    if (first && rank == 1) wait_for_ever();
    if (!first) return 0;
    for (;;) {  // rank 0, until it is ended
      heartbeat::tick();
      sleep_ms(10);
    }
  }
  if (name == "waits for a peer") {  // longer than launch.hang
    const heartbeat::Wait waits(10);
    sleep_ms(1500);
    return 0;
  }
  if (name == "crashes every time") {
    if (rank == 1) ::abort();
    wait_for_ever();
  }
  if (name == "crashes at other steps") {
    heartbeat::reach_step(rank_info.generation);
    if (rank == 1 && rank_info.generation < 6) ::abort();
    if (rank_info.generation < 6) wait_for_ever();
    return 0;
  }
  if (name == "not finite") {
    if (rank == 1) fail(ErrorCode::kNotFinite, "step 8: the loss is nan");
    wait_for_ever();
  }
  ADD_FAILURE() << "no act " << name;
  return 1;
}

TEST(WorkerMode, DISABLED_Act) {
  const std::optional<RankInfo> rank_info = rank_info_from_environment();
  if (!rank_info) ::_exit(99);
  const fs::path traces = std::getenv(kTraces);
  answer_with_stacks();
  ::_exit(run_as_worker(*rank_info, "", traces, [&](const RankInfo& info) {
    const int code = act(std::getenv(kAct), info, traces);
    std::fflush(nullptr);
    return code;
  }));
}

TEST_F(Workers, KnowTheirPlaceAndWriteToTheirLogs) {
  WorkerLaunch options = launch("environment", 3);
  options.threads = 5;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_workers(options), 0);
  const std::string out = testing::internal::GetCapturedStdout();
  const std::string err = testing::internal::GetCapturedStderr();
  const std::string start_id = trace("place-0").substr(trace("place-0").rfind(' '));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(trace(fmt::format("place-{}", rank)),
              fmt::format("{0} of 3, {0} of 3, 5 threads,{1}", rank, start_id));
  }
  EXPECT_THAT(out, AllOf(HasSubstr("out of rank 0\n"), Not(HasSubstr("rank 1"))));
  EXPECT_THAT(err, AllOf(HasSubstr("err of rank 0\n"), Not(HasSubstr("rank 1"))));
  const std::string log = trace("logs/rank-00002.log");
  EXPECT_THAT(log, AllOf(HasSubstr("out of rank 2\n"), HasSubstr("err of rank 2\n"),
                         Not(HasSubstr("rank 0")), Not(HasSubstr("rank 1"))));

  // A second start: another id, logs appended to, the cores divided.
  EXPECT_EQ(run_workers(launch("environment", 2)), 0);
  EXPECT_THAT(trace("place-0"), Not(HasSubstr(start_id)));
  EXPECT_THAT(trace("place-0"), Not(HasSubstr(" 5 threads")));
  EXPECT_EQ(trace("logs/rank-00002.log"), log);
}

TEST_F(Workers, TheOneThatFailsIsNamedWithItsMessage) {
  const Error error = failure("one throws", 4);
  EXPECT_EQ(error.code(), ErrorCode::kInvalid);
  EXPECT_EQ(std::string(error.what()), fmt::format("rank 3 failed: the corpus is torn (log: {})",
                                                   (traces_ / "logs" / "rank-00003.log").string()));
  EXPECT_THAT(trace("logs/rank-00003.log"), HasSubstr("the corpus is torn"));
}

TEST_F(Workers, AWorkerThatLostAPeerIsNotTheCause) {
  const Error error = failure("consequence first", 4);
  EXPECT_THAT(error.what(), HasSubstr("rank 3 failed: internal error: the root of it"));
  EXPECT_EQ(error.code(), ErrorCode::kInternal);
  EXPECT_THAT(trace("logs/rank-00001.log"), HasSubstr("rank 3 is gone"));
}

TEST_F(Workers, WhereNothingElseFailedTheLostPeerIsToldOf) {
  const Error error = failure("one hangs", 4, 0.3);
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("failed: all-reduce of dp: rank 3 did not arrive (log: "));
}

TEST_F(Workers, AWorkerThatIsKilledIsTheCause) {
  const Error error = failure("one is killed", 4);
  EXPECT_THAT(error.what(), HasSubstr("rank 2 was killed by signal 9 (SIGKILL)"));
  EXPECT_THAT(error.what(), HasSubstr("logs/rank-00002.log"));
}

TEST_F(Workers, AWorkerThatLeavesWithoutAWord) {
  const Error error = failure("one leaves", 3);
  EXPECT_THAT(error.what(), HasSubstr("rank 1 ended with exit code 3 without saying why (log: "));
}

TEST_F(Workers, AUsageErrorStaysOne) {
  const Error error = failure("all wrong", 3);
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("failed: the mesh does not fit"));
}

TEST_F(Workers, TheStubbornAreKilledAfterTheGraceTime) {
  const auto start = Clock::now();
  const Error error = failure("one fails, the other is stubborn", 2, 0.3);
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(300));
  EXPECT_THAT(error.what(), HasSubstr("rank 0 failed: the disk is gone"));
}

TEST_F(Workers, SignalsArePassedOnAndTheRunIsRequeued) {
  // SIGINT is passed on as SIGTERM, since a second SIGINT would end a worker.
  for (const auto& [sent, seen] :
       {std::pair(SIGTERM, SIGTERM), {SIGUSR1, SIGUSR1}, {SIGINT, SIGTERM}}) {
    const pid_t parent = start_parent("stop", 2);
    ::kill(parent, sent);
    EXPECT_EQ(exit_code_of(parent), 75) << trace("error");
    for (const char* rank : {"0", "1"}) {
      EXPECT_EQ(trace(std::string("signal-") + rank), std::to_string(seen));
      fs::remove(traces_ / (std::string("ready-") + rank));
    }
  }
}

TEST_F(Workers, AStopBeforeTrainingIsNoFailure) {
  const pid_t parent = start_parent("stop early", 2);
  ::kill(parent, SIGTERM);
  EXPECT_EQ(exit_code_of(parent), 75) << trace("error");
}

TEST_F(Workers, ASecondInterruptEndsEverything) {
  const pid_t parent = start_parent("stubborn", 2);
  // Pending ones merge, so repeat; but what comes when the workers have ended is not held back.
  const auto has_workers = [&] {
    return !read_file_if_any(fmt::format("/proc/{0}/task/{0}/children", parent)).empty();
  };
  while (has_workers()) {
    ::kill(parent, SIGINT);
    sleep_ms(20);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(trace("error"), HasSubstr("interrupted twice"));
  EXPECT_THAT(trace("error"), HasSubstr("nothing was saved so far"));
}

// `timeout -s INT` sends one to the parent and one to its group.
TEST_F(Workers, TwoInterruptsAtOnceAreOne) {
  const pid_t parent = start_parent("stop", 2);
  for (int i = 0; i < 5; ++i) {
    ::kill(parent, SIGINT);
    sleep_ms(20);  // so that they do not merge, unless the workers have ended
    if (!fs::exists(fmt::format("/proc/{}", parent))) break;
  }
  EXPECT_EQ(exit_code_of(parent), 75) << trace("error");
}

TEST_F(Workers, NobodyOutlivesTheParent) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans become children of this process
  const pid_t parent = start_parent("stop", 3);
  ::kill(parent, SIGKILL);
  EXPECT_EQ(exit_code_of(parent), -SIGKILL);
  for (int rank = 0; rank < 3; ++rank) {
    const pid_t worker = std::stoi(trace(fmt::format("ready-{}", rank)));
    EXPECT_EQ(exit_code_of(worker), -SIGKILL);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(Workers, UnderAnotherLauncherErrorsAreThrownOn) {
  const RankInfo rank_info = {.rank = 0, .size = 2, .launcher = "torchrun", .start_id = "a"};
  const fs::path folder = traces_ / "rendezvous" / "a";
  fs::create_directories(folder);
  const auto run = [&](const std::function<int(const RankInfo&)>& body) {
    return run_as_worker(rank_info, "", traces_, body);
  };
  EXPECT_THROW(run([](const RankInfo&) -> int { fail(ErrorCode::kIo, "no disk"); }), Error);
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_EQ(run([](const RankInfo&) { return 75; }), 75);
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Workers, AnAbsentParentIsNoticed) {
  try {
    die_with_parent(::getpid());  // a process is not its own parent
    ADD_FAILURE() << "not noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  }
  ::prctl(PR_SET_PDEATHSIG, 0);
}

TEST_F(Workers, AFailureToStartLeavesNobody) {
  WorkerLaunch options = launch("stop", 3);
  fs::create_directories(traces_ / "logs" / "rank-00002.log");  // cannot be opened as a file
  EXPECT_THROW(run_workers(options), Error);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(Workers, ReportsAreReadBackOrSaidToBeUnreadable) {
  EXPECT_FALSE(read_failure(traces_, 3));
  report_failure(traces_, 3, Error(ErrorCode::kNoSpace, "disk \"a\" is\nfull \xff"));
  const std::optional<Error> read = read_failure(traces_, 3);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->code(), ErrorCode::kNoSpace);
  EXPECT_THAT(read->what(), HasSubstr("disk \"a\" is\nfull "));
  for (const char* text : {"", "{", "[]", "{\"code\": \"x\", \"message\": 1}"}) {
    write_file_atomic(traces_ / "failed-00003", text);
    EXPECT_THAT(read_failure(traces_, 3)->what(), HasSubstr("cannot be read")) << text;
  }
}

}  // namespace
}  // namespace skein
