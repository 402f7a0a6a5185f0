// run_workers in tests: the workers run the test program again, but only WorkerMode.DISABLED_Act of
// workers_test.cc, which an environment variable tells what to do and where to leave traces.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "skein/base/machine/clock.h"
#include "skein/launch/node/workers.h"

namespace skein::test {

inline constexpr char kAct[] = "SKEIN_TEST_ACT";
inline constexpr char kTraces[] = "SKEIN_TEST_TRACES";

inline void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

class Workers : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/workers_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    traces_ = name;
    ::setenv(kTraces, traces_.c_str(), 1);
    ::unsetenv("OMP_NUM_THREADS");
  }
  void TearDown() override { fs::remove_all(traces_); }

  WorkerLaunch launch(const std::string& act, int num_workers, double grace_s = 20) {
    ::setenv(kAct, act.c_str(), 1);
    WorkerLaunch launch;
    launch.num_workers = num_workers;
    launch.arguments = {"--gtest_filter=WorkerMode.DISABLED_Act", "--gtest_brief=1",
                        "--gtest_also_run_disabled_tests"};
    launch.run_dir = traces_;
    launch.grace_s = grace_s;
    launch.membership.max_restarts = 0;
    return launch;
  }

  // The error that the run ends with; checks that no worker is left.
  Error failure(const std::string& act, int num_workers, double grace_s = 20) {
    try {
      const int code = run_workers(launch(act, num_workers, grace_s));
      ADD_FAILURE() << act << " ended with " << code;
    } catch (const Error& error) {
      EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
      EXPECT_TRUE(fs::is_empty(traces_ / "rendezvous"));
      return error;
    }
    return Error(ErrorCode::kInternal, "");
  }

  std::string trace(const std::string& name) const { return read_file_if_any(traces_ / name); }

  // Forks a process that runs the workers, and waits until all of them are ready.
  pid_t start_parent(const std::string& act, int num_workers) {
    const WorkerLaunch options = launch(act, num_workers);
    const pid_t parent = ::fork();
    if (parent == 0) {
      int code = 99;
      try {
        code = run_workers(options);
      } catch (const Error& error) {
        write_file_atomic(traces_ / "error", error.what());
        code = 1;
      }
      ::_exit(code);
    }
    const auto limit = Clock::now() + std::chrono::seconds(30);
    for (int rank = 0; rank < num_workers; ++rank) {
      while (trace(fmt::format("ready-{}", rank)).empty() && Clock::now() < limit) sleep_ms(5);
    }
    return parent;
  }

  static int exit_code_of(pid_t process) {
    int status = 0;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  fs::path traces_;
};

}  // namespace skein::test
