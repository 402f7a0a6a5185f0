// The check is this test program again: only the disabled test, which an environment variable tells
// what to do.
#include "skein/launch/node/host_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/base/machine/crash_signals.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr char kAct[] = "SKEIN_TEST_CHECK";

// Not a test: what a check does.
TEST(HostCheckAct, DISABLED_Act) {
  const char* name = std::getenv(kAct);
  if (name == nullptr) return;
  take_back_crash_signals();  // as the program does
  const std::string act = name;
  fmt::print("product: ok, 0.01 s: right\nstorage: ");
  std::fflush(stdout);
  if (act == "hangs") ::pause();
  if (act == "crashes") {
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would exit
    ::raise(SIGSEGV);
  }
  if (act == "fails") fmt::print("FAILED cannot write\n");
  std::fflush(stdout);
  ::_exit(act == "fails" ? 1 : 0);
}

std::vector<std::string> arguments() {
  return {"--gtest_filter=HostCheckAct.DISABLED_Act", "--gtest_also_run_disabled_tests"};
}

class RealCheck : public testing::Test {
 protected:
  CheckOutcome outcome(const std::string& act, bool kill = false) {
    ::setenv(kAct, act.c_str(), 1);
    sigset_t mask;
    sigemptyset(&mask);
    HostCheck check(1, arguments(), mask);
    if (kill) check.kill();
    ::siginfo_t ended{};
    ::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
    ::unsetenv(kAct);
    return check.poll().value();
  }
};

TEST_F(RealCheck, SaysWhatFailed) {
  EXPECT_EQ(outcome("passes"), CheckOutcome());
  EXPECT_EQ(outcome("fails").problem, "storage: cannot write");
}

TEST_F(RealCheck, ACrashIsAFailureAndSaysWhere) {
  EXPECT_THAT(outcome("crashes").problem,
              HasSubstr("killed by signal 11 after it said: storage: "));
  EXPECT_THAT(outcome("hangs", true).problem, HasSubstr("killed by signal 9"));
}

// A dead process that another one traces is not given to its parent, as one that a system call
// holds in the kernel is not.
TEST_F(RealCheck, OneThatTheKernelCannotEndIsNotWaitedFor) {
  ::setenv(kAct, "hangs", 1);
  sigset_t mask;
  sigemptyset(&mask);
  auto check = std::make_unique<HostCheck>(1, arguments(), mask);
  ::unsetenv(kAct);
  std::array<int, 2> traces{};
  ASSERT_EQ(::pipe(traces.data()), 0);
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char done = ::ptrace(PTRACE_SEIZE, check->pid(), nullptr, nullptr) == 0 ? 'y' : 'n';
    if (::write(traces[1], &done, 1) == 1) ::pause();
    ::_exit(0);
  }
  char done = 0;
  ASSERT_EQ(::read(traces[0], &done, 1), 1);
  if (done != 'y') {
    ::kill(tracer, SIGKILL);
    ::waitpid(tracer, nullptr, 0);
    GTEST_SKIP() << "may not trace a process here";
  }
  // One that waits dies of the alarm instead of hanging.
  ::alarm(5);
  check.reset();
  ::alarm(0);
  ::kill(tracer, SIGKILL);
  ::waitpid(tracer, nullptr, 0);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

TEST(OutcomeOf, AllThatFailedIsSaid) {
  const std::string output =
      "product: FAILED 1, expected 2\nmemory: ok, 1 s: x\nclock: FAILED off\n";
  EXPECT_EQ(outcome_of(output, 1 << 8).problem, "product: 1, expected 2; clock: off");
  EXPECT_EQ(outcome_of("storage: FAILED x\n", 0), CheckOutcome());
}

TEST(OutcomeOf, ACheckThatCouldNotBeMadeFoundNothing) {
  const CheckOutcome unmade = outcome_of("skein: no such key\n", 2 << 8);
  EXPECT_EQ(unmade.problem, "");
  EXPECT_EQ(unmade.unmade, "its check ended with 2 after it said: skein: no such key");
  EXPECT_EQ(outcome_of("", 1 << 8).unmade, "its check ended with 1 after it said: nothing");
}

}  // namespace
}  // namespace skein
