// Saves checkpoints of one rank's state and keeps the outcome of each save.
//
// Ranks   all ranks begin the same saves, after the same steps
// Errors  collect() and end() throw Error{kNotFinite}, since any later save would hold the same bad
//         state, and Error{kBusy} where another process has taken the run's folder. Other failures
//         are logged: training continues, and a later save may succeed; require_saved() throws that
//         of the last one
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "skein/checkpoint/find/hold.h"
#include "skein/checkpoint/save/checkpoint_writer.h"
#include "skein/runtime/executor.h"
#include "skein/train/start/prepared_run.h"

namespace skein {

class Saver {
 public:
  // Reserves host memory for a snapshot. `run` must outlive the saver.
  explicit Saver(const PreparedRun& run);
  int64_t snapshot_bytes() const { return writer_.snapshot_bytes(); }

  // Sets the step of the checkpoint that is there, 0 for a new run. `parent` is held until this run
  // has saved a checkpoint of its own.
  void go_on_from(int64_t step, std::shared_ptr<const CheckpointHold> parent);
  // Begins a save. Returns once every rank has begun it.
  void save(TrainingState state, const Executor& executor);
  // Records the outcome of saves that have finished; does not wait.
  void collect();
  // Waits for the save that is under way, then does the same.
  void end();
  // After the last save: throws where it failed, with what to do about it.
  void require_saved() const;
  // After the loss of a rank: saves under way stop waiting for other ranks.
  void expect_no_peers() { peer_lost_ = true; }

  int64_t saved_step() const { return saved_step_; }  // of the newest save that was begun
  int64_t good_step() const { return good_step_; }    // of the newest complete checkpoint

 private:
  CheckpointWriterOptions options() const;

  const PreparedRun& run_;
  std::atomic<bool> peer_lost_ = false;
  CheckpointWriter writer_;
  std::shared_ptr<const CheckpointHold> parent_;
  int64_t saved_step_ = 0;
  int64_t good_step_ = 0;
  std::optional<Error> failure_;
};

}  // namespace skein
