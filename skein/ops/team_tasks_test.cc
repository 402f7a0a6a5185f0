#include "skein/ops/team_tasks.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace skein {
namespace {

TEST(TeamTasks, EachIsDoneOnceInEveryRound) {
  for (const int threads : {1, 2, 3, 70}) {  // of the last, several begin in one share
    std::vector<std::vector<std::atomic<int>>> done;
    for (const int64_t count : {0, 1, 2, 7, 100, 64}) done.emplace_back(count);
    TeamTasks tasks;
#pragma omp parallel num_threads(threads)
    {
      TeamTasks::Member member(tasks);
      for (std::vector<std::atomic<int>>& round : done) {
        member.run(static_cast<int64_t>(round.size()), [&](int64_t task) { ++round[task]; });
#pragma omp barrier
      }
    }
    for (const std::vector<std::atomic<int>>& round : done) {
      for (const std::atomic<int>& times : round) EXPECT_EQ(times, 1) << threads;
    }
  }
}

TEST(TeamTasks, ThreadsBeginWithNeighboursAndTakeOverFromASlowOne) {
  constexpr int64_t kTasks = 100;
  std::vector<int> by(kTasks, -1);
  TeamTasks tasks;
#pragma omp parallel num_threads(2)
  {
    TeamTasks::Member member(tasks);
    const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    member.run(kTasks, [&](int64_t task) {
      std::atomic_ref<int>(by[task]).store(thread);
      // The first thread begins once the second has, and the second's first task ends after all.
      const int64_t awaited = task == 0 ? kTasks / 2 : kTasks - 1;
      const bool waits = threads == 2 && (task == 0 || task == kTasks / 2);
      while (waits && std::atomic_ref<int>(by[awaited]).load() < 0) std::this_thread::yield();
    });
  }
  EXPECT_EQ(by[0], 0);
  EXPECT_EQ(by[kTasks / 2], 1);
  EXPECT_EQ(by[kTasks / 2 + 1], 0) << "what the slow thread leaves";
  EXPECT_EQ(by[kTasks - 1], 0);
}

}  // namespace
}  // namespace skein
