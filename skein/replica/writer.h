// Saves a rank's part of the state in memory: training stands still while it is copied, the
// checksums are taken meanwhile, and the machine's supervisor passes it on to another machine.
//
// Order    save k + 1 may begin once save k is complete on all ranks (is_complete on each of them):
//          then a loss at any moment leaves one of the two whole
// Cost     the copy, at the memory's speed; on a CPU also the time that checksums and passing on
//          take from the cores (busy_seconds)
// Memory   kReplicaSlots * data_bytes, and as much on the machine that keeps the copies
// Errors   as memory.h
// Threads  one caller, and one own thread
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "skein/base/threads/mutex.h"
#include "skein/checkpoint/format/manifest.h"
#include "skein/checkpoint/save/layout.h"
#include "skein/checkpoint/save/snapshot.h"
#include "skein/replica/memory.h"
#include "skein/replica/worker_place.h"
#include "skein/tensor/view.h"

namespace skein {

// Of the time, where checkpoint.memory_every_steps does not say how often copies are made.
inline constexpr double kCopyShare = 0.01;

struct ReplicaWriterOptions {
  ReplicaPlace place;
  std::string save;          // ReplicaLabel::save
  int64_t first_number = 1;  // of the first save; the same on all ranks
  int rank = 0, num_ranks = 1;
  CopyFunction copy;  // memcpy if empty
};

class ReplicaWriter {
 public:
  ReplicaWriter(ReplicaWriterOptions options, std::vector<TensorSpec> specs);
  ~ReplicaWriter();
  ReplicaWriter(const ReplicaWriter&) = delete;
  ReplicaWriter& operator=(const ReplicaWriter&) = delete;

  // Copies the state (`views`: one per spec, in order) and begins the rest. The newest save must be
  // complete.
  void begin(TrainingState state, std::span<const View> views);
  // Whether the newest save is done here, and kept elsewhere if there is another machine. True
  // before the first. Throws what its thread has met.
  bool is_complete();
  // What the newest complete save cost: seconds for which training stood still, and of the
  // processor besides.
  double stall_seconds() const { return stall_seconds_; }
  double busy_seconds();

 private:
  void run();
  void finish_save(const TrainingState& state);

  const ReplicaWriterOptions options_;
  const CheckpointLayout layout_;
  std::vector<std::unique_ptr<ReplicaMemory>> slots_;
  SnapshotCopy copy_;
  int64_t number_ = 0;  // of the newest save; 0: there is none
  double stall_seconds_ = 0;

  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<TrainingState> state_ SKEIN_GUARDED_BY(mutex_);  // to be finished
  double busy_seconds_ SKEIN_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ SKEIN_GUARDED_BY(mutex_);
  bool ends_ SKEIN_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace skein
