// The saves of one rank of a run: what it stores, the writer, and what became of each save.
//
// Ranks   all begin the same saves after the same steps
// Errors  collect and end throw Error{kNotFinite}: later saves would follow from the same state.
//         Any other failure is logged and kept; the run goes on, and a later save may work
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/checkpoint/checkpoint_hold.h"
#include "skein/checkpoint/checkpoint_writer.h"
#include "skein/comm/communicator.h"
#include "skein/config/config.h"
#include "skein/record/run_log.h"
#include "skein/runtime/device.h"
#include "skein/runtime/executor.h"
#include "skein/weights/training_state.h"

namespace skein {

class Saver {
 public:
  // Reserves the memory of a snapshot. `log`: rank 0's, null on others. All must outlive it.
  Saver(const Config& config, Communicator& world, Device& device, const std::string& start_id,
        std::vector<StateTensor> tensors, RunLog* log);
  static int64_t snapshot_bytes(const std::vector<StateTensor>& tensors);
  int64_t snapshot_bytes() const { return writer_.snapshot_bytes(); }
  const std::vector<StateTensor>& tensors() const { return tensors_; }

  // The run goes on from a checkpoint of `step`, or begins with 0. `parent`: not to be removed
  // before there is a first checkpoint.
  void go_on_from(int64_t step, std::shared_ptr<const CheckpointHold> parent);
  // Begins to save; every rank has when it returns.
  void save(TrainingState state, const Executor& executor);
  // Takes note of the saves that ended.
  void collect();
  // Waits for the one that is under way as well.
  void end();
  // A rank is gone: saves need not wait for it.
  void expect_no_peers() { peer_lost_ = true; }

  int64_t saved_step() const { return saved_step_; }  // of the newest that was begun
  int64_t good_step() const { return good_step_; }    // of the newest that is complete
  const std::optional<Error>& failure() const { return failure_; }  // of the newest that ended

 private:
  CheckpointWriterOptions options(const Config& config, const std::string& start_id);

  Communicator& world_;
  Device& device_;
  RunLog* const log_;
  const std::vector<StateTensor> tensors_;
  std::atomic<bool> peer_lost_ = false;
  CheckpointWriter writer_;
  std::shared_ptr<const CheckpointHold> parent_;
  int64_t saved_step_ = 0;
  int64_t good_step_ = 0;
  std::optional<Error> failure_;
};

}  // namespace skein
