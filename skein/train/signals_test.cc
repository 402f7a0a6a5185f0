#include "skein/train/signals.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(StopSignals, RemembersWhoAsked) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGUSR2}) {
    const StopSignals stop;
    EXPECT_EQ(stop.requested(), 0);
    raise(signal);
    EXPECT_EQ(stop.requested(), signal);
  }
}

TEST(StopSignals, StoppingForGoodGoesBeforeRegrouping) {
  const StopSignals stop;
  raise(SIGUSR2);
  raise(SIGTERM);
  EXPECT_EQ(stop.requested(), SIGTERM);
  raise(SIGUSR2);
  EXPECT_EQ(stop.requested(), SIGTERM);
}

TEST(StopSignals, PutsTheFormerHandlersBack) {
  struct sigaction before {
  }, after{};
  sigaction(SIGTERM, nullptr, &before);
  { const StopSignals stop; }
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(StopSignals, LeavesAHangUpIgnoredThatNohupIgnores) {
  struct sigaction ignore {};
  struct sigaction former {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &ignore, &former);
  {
    const StopSignals stop;
    raise(SIGHUP);
    EXPECT_EQ(stop.requested(), 0);
  }
  sigaction(SIGHUP, &former, nullptr);
}

TEST(StopSignals, ASecondInterruptEndsTheProcess) {
  const auto interrupted_twice = [] {
    const StopSignals stop;
    raise(SIGINT);
    if (stop.requested() != SIGINT) _exit(3);
    raise(SIGINT);
    _exit(4);
  };
  EXPECT_EXIT(interrupted_twice(), testing::KilledBySignal(SIGINT), "^$");
}

TEST(StopSignals, InterruptsAreAnsweredAtOnce) {
  const auto interrupted_twice = [](int64_t saved) {
    StopSignals stop(/*tells=*/true);
    stop.note_saved(saved);
    raise(SIGINT);
    raise(SIGINT);
    _exit(4);
  };
  EXPECT_EXIT(interrupted_twice(120), testing::KilledBySignal(SIGINT),
              "^stopping after this step; Ctrl-C again ends without saving\n"
              "ended without saving: nothing was saved since step 120\n$");
  EXPECT_EXIT(interrupted_twice(0), testing::KilledBySignal(SIGINT), "nothing was saved so far");
}

TEST(StopSignals, NamesSignals) {
  EXPECT_EQ(signal_name(SIGUSR1), "SIGUSR1");
  EXPECT_EQ(signal_name(1000), "signal 1000");
}

}  // namespace
}  // namespace skein
