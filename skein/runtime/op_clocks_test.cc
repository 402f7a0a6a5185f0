#include "skein/runtime/op_clocks.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "skein/base/threads/processor_time.h"

namespace skein {
namespace {

// A thread that waited for a tick of the scheduler.
constexpr double kTick = 4e-3;

TEST(UndisturbedSeconds, IsTheMedianOfTheRunsInWhichNoThreadWaited) {
  std::vector<OpObservation> runs = {{.seconds = 1.00e-3}, {.seconds = 1.02e-3}, {.seconds = 5e-3}};
  EXPECT_EQ(undisturbed_seconds(runs), 1.02e-3);
  // Neither many longer ones change it, in which others waited for who had no core, nor a shorter
  // one, in which they did its share.
  for (int i = 0; i < 50; ++i) runs.push_back({.seconds = 5e-3, .waited = kTick});
  runs.push_back({.seconds = 0.5e-3, .waited = kTick});
  EXPECT_EQ(undisturbed_seconds(runs), 1.02e-3);
}

TEST(UndisturbedSeconds, IsTheLeastWhereEachRunWasDisturbed) {
  EXPECT_EQ(undisturbed_seconds({{12e-3, kTick}, {8e-3, kTick}, {9e-3, 3 * kTick}}), 8e-3);
  EXPECT_EQ(undisturbed_seconds({}), 0);
}

TEST(UndisturbedSeconds, WakingAThreadDisturbsNothing) {
  EXPECT_FALSE((OpObservation{.seconds = 20e-6, .waited = 50e-6}.disturbed()));
  EXPECT_FALSE((OpObservation{.seconds = 1, .waited = 10e-3}.disturbed()));
  EXPECT_TRUE((OpObservation{.seconds = 1e-3, .waited = 0.2e-3}.disturbed()));
  EXPECT_TRUE((OpObservation{.seconds = 0.1, .waited = kTick}.disturbed()));
}

// One thread that computes for 50 ms of its own time, on a core that it shares with another.
TEST(OpClocks, SeeThatAThreadWaitedForItsCore) {
  std::atomic<bool> rival_runs = false, done = false;
  std::vector<OpObservation> runs;
  double passed = 0;
  std::thread([&] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    omp_set_num_threads(1);
    std::thread rival([&] {
      while (!done) rival_runs = true;
    });
    while (!rival_runs) std::this_thread::yield();
    OpClocks clocks;
    clocks.at_op(true);
    const Clock::time_point start = Clock::now();
    for (const double begin = thread_seconds(); thread_seconds() - begin < 50e-3;) {
    }
    passed = seconds_since(start);
    clocks.at_op(false);
    done = true;
    rival.join();
    runs = clocks.take();
    EXPECT_TRUE(clocks.take().empty());
  }).join();
  ASSERT_EQ(runs.size(), 1);
  EXPECT_GE(runs[0].seconds, 50e-3);
  EXPECT_LT(runs[0].seconds, passed);
  EXPECT_GT(runs[0].waited, 1e-3);
  EXPECT_TRUE(runs[0].disturbed());
}

}  // namespace
}  // namespace skein
