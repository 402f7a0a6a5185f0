// The tasks of a loop, divided among a team of threads. Each thread first takes an even share of
// neighbours, in order: loops that divide the same rows find them in the caches of the core that
// wrote them. Who is done takes what is left of the others' shares, a task at a time, so that a
// thread that another process delays is not waited for. Which thread does a task changes nothing.
//
// Cost     one atomic addition a task; a look at every share, by every thread
// Memory   8 KiB, shared by the team
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace skein {

class TeamTasks {
 public:
  // A thread of the team; to be made in the parallel region.
  class Member {
   public:
    explicit Member(TeamTasks& team)
        : team_(team),
          shares_(std::min(omp_get_num_threads(), kMostShares)),
          own_(omp_get_thread_num() % shares_) {}

    // Called by every thread of the team, which must meet at a barrier between two calls.
    template <typename Task>
    void run(int64_t count, const Task& task) {
      Counters& taken = team_.taken_[round_ % 2];
      team_.taken_[++round_ % 2][own_].value.store(0, std::memory_order_relaxed);
      for (int i = 0; i < shares_; ++i) {
        const int share = (own_ + i) % shares_;
        const int64_t begin = count * share / shares_, end = count * (share + 1) / shares_;
        std::atomic<int64_t>& next = taken[share].value;
        if (next.load(std::memory_order_relaxed) >= end - begin) continue;
        for (int64_t at; (at = begin + next.fetch_add(1, std::memory_order_relaxed)) < end;) {
          task(at);
        }
      }
    }

   private:
    TeamTasks& team_;
    int shares_, own_;
    int64_t round_ = 0;
  };

 private:
  static constexpr int kMostShares = 64;  // of more threads, several begin in the same share
  struct alignas(64) Counter {
    std::atomic<int64_t> value = 0;
  };
  using Counters = std::array<Counter, kMostShares>;
  std::array<Counters, 2> taken_;  // of this call and the next one
};

}  // namespace skein
