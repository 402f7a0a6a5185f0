// How the system schedules the threads that compute and those that move bytes.
//
// While it lives, the calling thread, and every thread that it starts, takes no core from one that
// runs (SCHED_BATCH, sched(7)), and runs for `slice` before its core goes to another one (Linux
// 6.12; ignored before). Where ranks share cores, that decides their speed: a thread that is
// interrupted in the middle of a send holds a lock, for which Gloo's thread then spins on the other
// core until the scheduler's next tick, and with each collective all other ranks wait for the two.
// Two tensor ranks on two cores (bench/predict.sh): steps of 1.4 times the length without.
//
// Threads that already have another policy than the default keep it; so does everything where the
// system refuses.
#pragma once

#include <chrono>
#include <cstdint>

namespace skein {

class BatchScheduling {
 public:
  // Longer than what a rank computes between two collectives.
  static constexpr std::chrono::nanoseconds kComputes = std::chrono::milliseconds(10);
  // As short as there is: its work takes less, and what is more it spins.
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
