// Runs a test body as several ranks: processes forked from the test, meeting in a temporary folder.
// Fork before anything starts threads: OpenMP in the test's own process would hang its children.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/store/job_secret.h"
#include "tests/comm/deadlines.h"

namespace skein::comm_test {

class Ranks {
 public:
  // `body` runs in every rank of [0, size) but `absent`; it may use EXPECT and ASSERT.
  Ranks(int size, const std::function<void(const WorldOptions&)>& body, int absent = -1) {
    std::string path = (std::filesystem::temp_directory_path() / "skein-ranks-XXXXXX").string();
    folder_ = mkdtemp(path.data());
    std::fflush(nullptr);
    for (int rank = 0; rank < size; ++rank) {
      const pid_t pid = rank == absent ? -1 : fork();
      if (pid == 0) become(rank, size, body);
      pids_.push_back(pid);
    }
  }
  ~Ranks() {
    for (const pid_t pid : pids_) {
      if (pid > 0) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  const std::string& folder() const { return folder_; }
  pid_t pid(int rank) const { return pids_.at(rank); }

  // True once the rank ended with all expectations met.
  bool passed(int rank, double timeout_s = 2 * kAtOnceS) {
    int status = -1;
    if (!ended(rank, &status, timeout_s)) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  void expect_passed() {
    for (size_t rank = 0; rank < pids_.size(); ++rank) {
      if (pids_[rank] < 0) continue;
      EXPECT_TRUE(passed(static_cast<int>(rank))) << "rank " << rank;
    }
  }

 private:
  [[noreturn]] void become(int rank, int size,
                           const std::function<void(const WorldOptions&)>& body) {
    try {
      body({.rank = rank,
            .size = size,
            .rendezvous = folder_,
            .secret = std::make_shared<JobSecret>("the secret of a test", "test"),
            .timeout_s = kDeadlineS});
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << " threw: " << error.what();
    }
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }

  bool ended(int rank, int* status, double timeout_s) {
    const auto start = std::chrono::steady_clock::now();
    while (waitpid(pids_.at(rank), status, WNOHANG) == 0) {
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      if (waited.count() > timeout_s) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pids_.at(rank) = -1;
    return true;
  }

  std::string folder_;
  std::vector<pid_t> pids_;
};

// Through shared memory, and then over Gloo alone.
inline void over_each_transport(const std::function<void()>& body) {
  for (const char* wanted : {"on", "off"}) {
    SCOPED_TRACE(std::string("SKEIN_SHARED_MEMORY=") + wanted);
    setenv("SKEIN_SHARED_MEMORY", wanted, 1);
    body();
  }
  unsetenv("SKEIN_SHARED_MEMORY");
}

// All ranks run `body` and pass.
inline void run_ranks(int size, const std::function<void(const WorldOptions&)>& body) {
  Ranks(size, body).expect_passed();
}

}  // namespace skein::comm_test
