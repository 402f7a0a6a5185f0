// How the system schedules the threads that compute and those that move bytes.
//
// During its life the calling thread, and every thread that it starts, does not preempt a running
// thread (SCHED_BATCH, sched(7)), and runs for `slice` before it is preempted itself (Linux 6.12;
// ignored before). Where ranks share cores, this decides their speed: a thread that is preempted in
// the middle of a send holds a lock, for which Gloo's thread spins on the other core until the
// scheduler's next tick, and all other ranks wait for these two in the collective. Two tensor ranks
// on two cores (bench/predict.sh): without it steps take 1.4 times as long.
//
// Threads with another policy than the default keep it, and nothing changes where the system
// refuses.
#pragma once

#include <chrono>
#include <cstdint>

namespace skein {

class BatchScheduling {
 public:
  // Longer than a rank computes between two collectives.
  static constexpr std::chrono::nanoseconds kComputes = std::chrono::milliseconds(10);
  // As short as the system allows: this thread's work takes less, and the rest of its time it
  // spins.
  static constexpr std::chrono::nanoseconds kMovesBytes = std::chrono::microseconds(100);

  explicit BatchScheduling(std::chrono::nanoseconds slice);
  ~BatchScheduling();
  BatchScheduling(const BatchScheduling&) = delete;
  BatchScheduling& operator=(const BatchScheduling&) = delete;

 private:
  bool active_ = false;
  uint32_t former_policy_ = 0;
  uint64_t former_slice_ns_ = 0;
};

}  // namespace skein
