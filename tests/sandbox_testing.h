// What tests of the sandbox share: a sandbox or the reason why there is none here, and processes
// by the name that a program gave itself.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "skein/base/error.h"
#include "skein/evaluate/execution/python_sandbox.h"

namespace skein::test {

// Whether this user may make the namespaces and mount in them, by a way of its own: where it may, a
// sandbox that cannot be made is a failure, and no reason to skip a test.
inline bool may_make_namespaces() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool may = ::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) == 0 &&
                     ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     ::mount("none", "/tmp", "tmpfs", 0, nullptr) == 0;
    ::_exit(may ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0;
}

inline std::unique_ptr<PythonSandbox> make_sandbox(double seconds, std::string& why_not) {
  if (!may_make_namespaces()) {
    why_not = "this user may not make namespaces here";
    return nullptr;
  }
  try {
    return std::make_unique<PythonSandbox>(seconds);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    why_not = error.what();  // no python3
    return nullptr;
  }
}

// Tests that share one sandbox with a limit of so many seconds; skipped where there is none.
template <int kSeconds>
class SandboxTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { sandbox_ = make_sandbox(kSeconds, why_not_); }
  static void TearDownTestSuite() { sandbox_.reset(); }
  void SetUp() override {
    if (sandbox_ == nullptr) GTEST_SKIP() << why_not_;
  }

  static inline std::unique_ptr<PythonSandbox> sandbox_;
  static inline std::string why_not_;
};

// Processes of this machine with that name (at most 15 characters), whose namespace they are in
// does not matter.
inline int num_processes_named(const std::string& name) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::string found;
    std::getline(std::ifstream(entry.path() / "comm"), found);
    if (found == name) ++count;
  }
  return count;
}

// A line of Python that gives its process a name, which those that it makes keep.
inline std::string naming(const std::string& name) {
  return "import ctypes; ctypes.CDLL(None).prctl(15, b'" + name + "', 0, 0, 0)\n";
}

}  // namespace skein::test
