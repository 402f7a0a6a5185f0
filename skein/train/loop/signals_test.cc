#include "skein/train/loop/signals.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "skein/base/machine/machine.h"
#include "skein/record/files/events.h"
#include "tests/temp_folder.h"

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

// A second one that counts.
void interrupt_later() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  raise(SIGINT);
}

TEST(StopSignals, ASecondInterruptEndsTheProcess) {
  const auto interrupted_twice = [] {
    const StopSignals stop;
    raise(SIGINT);
    if (stop.requested() != SIGINT) _exit(3);
    interrupt_later();
    _exit(4);
  };
  EXPECT_EXIT(interrupted_twice(), testing::KilledBySignal(SIGINT), "^$");
}

// `timeout -s INT` sends one to the process and one to its group.
TEST(StopSignals, TwoInterruptsAtOnceAreOne) {
  const auto interrupted_twice = [] {
    const StopSignals stop({.tells = true});
    raise(SIGINT);
    raise(SIGINT);
    _exit(stop.requested() == SIGINT ? 4 : 3);
  };
  EXPECT_EXIT(interrupted_twice(), testing::ExitedWithCode(4),
              "^stopping after this step[^\n]*\n$");
}

TEST(StopSignals, OfAWorkerItsSupervisorEndsTheProcess) {
  const auto interrupted_twice = [] {
    const StopSignals stop({.ends = false});
    raise(SIGINT);
    interrupt_later();
    _exit(4);
  };
  EXPECT_EXIT(interrupted_twice(), testing::ExitedWithCode(4), "^$");
}

TEST(StopSignals, AnEndWithoutSavingIsWrittenDown) {
  const test::TempFolder folder;
  const fs::path events = folder.path() / "events.jsonl";
  const auto interrupted_twice = [&](bool ended) {
    StopSignals stop;
    stop.record_in(folder.path());
    stop.note_step(12);
    stop.note_saved(10);
    raise(SIGINT);
    if (ended) stop.note_end();
    interrupt_later();
    _exit(4);
  };
  write_file_atomic(events, "");
  EXPECT_EXIT(interrupted_twice(true), testing::KilledBySignal(SIGINT), "");
  EXPECT_EQ(read_file(events), "");
  const double before = unix_time();
  EXPECT_EXIT(interrupted_twice(false), testing::KilledBySignal(SIGINT), "");
  const Json event = parse_json(read_file(events), "events");
  EXPECT_EQ(event.at("event"), "stop");
  EXPECT_EQ(event.at("reason"), "SIGINT twice, without saving");
  EXPECT_EQ(event.at("saved"), false);
  EXPECT_EQ(event.at("step"), 12);
  EXPECT_EQ(event.at("saved_step"), 10);
  EXPECT_EQ(event.at("host"), node_name());
  EXPECT_EQ(event.at("boot"), boot_name());
  EXPECT_NEAR(event.at("clock").get<double>(), boot_seconds(), 60);
  EXPECT_GE(event.at("time").get<double>(), before);
  EXPECT_LE(event.at("time").get<double>(), unix_time());
}

TEST(StopSignals, InterruptsAreAnsweredAtOnce) {
  const auto interrupted_twice = [](int64_t saved) {
    StopSignals stop({.tells = true});
    stop.note_saved(saved);
    raise(SIGINT);
    interrupt_later();
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
