// Saving: the state is copied to memory that was reserved at start-up, and training continues while
// a thread writes the copy.
//
// Commit   step-....partial/ gets its safetensors files, each fsynced, then manifest.json, fsynced;
//          the folder is fsynced, renamed to step-..., and its parent fsynced. A crash at any
//          moment leaves the existing checkpoints, and either the whole new one or none of it.
// Ranks    Several ranks save one checkpoint together, each what its specs say, through a shared
//          file system alone: every rank begins the same saves in the same order, and all get the
//          same outcome. Only rank 0 cleans up, commits and applies retention; so the other writers
//          may be used only after rank 0's is constructed (a barrier). See shared_save.h.
// Memory   exactly snapshot_bytes, from construction on; a save adds the text of the manifest, and
//          on rank 0 of several ranks the parts that the others report.
// Errors   The constructor throws. A save that fails is a Result from poll(): its partial folder is
//          removed, earlier checkpoints are untouched, and the next save may be tried as if nothing
//          had happened. A rank that fails fails the save for all: rank 0's error names it.
// Threads  one caller, and one own thread for asynchronous saves.
#pragma once

#include <deque>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/threads/mutex.h"
#include "skein/checkpoint/format/manifest.h"
#include "skein/checkpoint/save/commit.h"
#include "skein/checkpoint/save/layout.h"
#include "skein/checkpoint/save/snapshot.h"

namespace skein {

struct CheckpointWriterOptions {
  RetentionPolicy retention;
  bool async = true;
  int64_t max_file_bytes = int64_t{4} << 30;
  int rank = 0;
  int num_ranks = 1;
  // The same on all ranks, different at each start, of a-z, 0-9, _ and -; only for several ranks.
  std::string save_id;
  // With at least this many ranks a save writes index.bin: a manifest.json with all their shards
  // would be too large to read.
  int index_from_ranks = 9;
  double deadline_s = 600;             // until the slowest rank must have written
  std::function<bool()> should_abort;  // polled by the writing thread while it waits for ranks
  // Rank 0 calls it before it cleans up or commits anything: throws an Error that refuses the save.
  std::function<void()> before_commit;
  CopyFunction copy;  // memcpy if empty; two threads may call it at once
  FileOps::Hook file_hook;
};

struct SavedCheckpoint {
  int64_t step = 0;
  fs::path path;
  int64_t num_bytes = 0;  // of the whole checkpoint; on ranks other than 0, of what they wrote
  double write_seconds = 0;
  std::vector<int64_t> removed_steps;  // by retention
  std::string warning;                 // the save succeeded, but an old checkpoint is not removed
};

class CheckpointWriter {
 public:
  // Creates `dir`, removes what a dead process left there (rank 0), and reserves the snapshot
  // memory.
  CheckpointWriter(const fs::path& dir, CheckpointWriterOptions options,
                   std::vector<TensorSpec> specs);
  // Waits for a running save.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // The bytes that the constructor will reserve for these tensors.
  static int64_t snapshot_bytes(const std::vector<TensorSpec>& specs);
  int64_t snapshot_bytes() const { return layout_.snapshot_bytes; }

  // Copies the state (`views`: one per spec, in order, each its slice) and starts to write it.
  // Returns for how many seconds training stood still: the copy, the rest of a save that was still
  // running, and if saves are synchronous, the writing.
  double begin(TrainingState state, std::span<const View> views);

  // The oldest finished save that poll() has not returned yet; nothing if there is none.
  std::optional<Result<SavedCheckpoint>> poll();

  // Returns when no save is running.
  void wait();

 private:
  enum class Phase { kIdle, kCopy, kWrite, kStop };

  void run();
  void copy_state(TrainingState state);
  Result<SavedCheckpoint> write(const TrainingState& state) const;
  void abandon(int64_t step, const std::exception_ptr& error) const;

  fs::path dir_;
  CheckpointWriterOptions options_;
  FileOps ops_;
  CheckpointLayout layout_;
  std::optional<Snapshot> snapshot_;
  SnapshotCopy copy_;
  TrainingState state_;
  int64_t num_begun_ = 0;

  Mutex mutex_;
  ConditionVariable changed_;
  Phase phase_ SKEIN_GUARDED_BY(mutex_) = Phase::kIdle;
  bool helper_copying_ SKEIN_GUARDED_BY(mutex_) = false;
  std::exception_ptr helper_error_ SKEIN_GUARDED_BY(mutex_);
  std::deque<Result<SavedCheckpoint>> finished_ SKEIN_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace skein
