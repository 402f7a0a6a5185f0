// What a run starts from: a copy of the state in memory, where there is one that is newer than the
// checkpoint that rank 0 chose; that checkpoint; the weights of model.init_from; or random weights.
//
// Order   the constructor chooses; then accept() checks, before anything is allocated or written;
//         load() fills the device; forget() frees what was read
// Errors  those of choose_start, accept_checkpoint and check_source
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "skein/checkpoint/find/reader.h"
#include "skein/comm/communicator.h"
#include "skein/config/config.h"
#include "skein/config/run/identity.h"
#include "skein/record/log/run_log.h"
#include "skein/replica/worker_place.h"
#include "skein/runtime/executor.h"
#include "skein/train/start/resume.h"
#include "skein/train/start/run_inputs.h"
#include "skein/weights/model_source.h"
#include "skein/weights/state_tensors.h"

namespace skein {

class Beginning {
 public:
  // `lock` (on the folder of checkpoints) and `log` are rank 0's, and null on other ranks. `config`
  // and `world` must outlive this object.
  // `place`: where copies of the state may lie in memory; null: nowhere.
  Beginning(const Config& config, Communicator& world, const RunLock* lock, RunLog* log,
            const ReplicaPlace* place = nullptr);

  // Throws where the checkpoint belongs to another run, or where this model would compute something
  // else from the weights than the one they were trained in.
  void accept(const RunInputs& inputs);
  // What identifies this run, to be stored in its checkpoints (config/run/identity.h).
  const Json& configuration() const { return configuration_; }

  // After divergence: chooses anew, from what there was at or before `step` (choose_before). load()
  // and forget() follow again. Collective; `lock` and `log` as in the constructor.
  void go_back(int64_t step, const RunInputs& inputs, const RunLock* lock, RunLog* log);

  const CheckpointReader* checkpoint() const { return checkpoint_.get(); }  // null: there is none
  int64_t step() const;  // after which it goes on
  const StartingPoint& start() const { return start_; }
  // The step of the newest checkpoint in storage, or 0: that of checkpoint(), unless it is a copy
  // in memory, which is newer.
  int64_t stored_step() const { return stored_step_; }
  // Whether every rank has a place for copies in memory, and the number of the next save there.
  bool keeps_copies() const { return keeps_copies_; }
  int64_t next_copy() const { return next_copy_; }
  std::string from() const;  // path of the checkpoint or of the weights; "": random ones
  // The same, but of a run that init_from names the checkpoint that was taken.
  std::string weights() const { return source_ ? source_->path().string() : from(); }
  RunLog::StartNote note() const;

  // Fills all of `tensors`: weights, moments and master copies. Without a checkpoint moments are 0.
  void load(const DecoderConfig& model, const std::vector<StateTensor>& tensors,
            Executor& executor) const;
  // Closes the checkpoint or the source of the weights, and releases the hold on the parent.
  void forget();

 private:
  void look_in_memory(const ReplicaPlace* place);
  void open_source(const RunInputs& inputs);
  bool is_first() const { return world_.rank() == 0; }

  const Config& config_;
  Communicator& world_;
  StartingPoint start_;
  std::string origin_;  // the checkpoint that the constructor chose
  std::unique_ptr<CheckpointReader> checkpoint_;
  int64_t stored_step_ = 0, next_copy_ = 1;
  bool keeps_copies_ = false;
  std::unique_ptr<ModelSource> source_;  // of model.init_from; null: not used
  Json configuration_;
  std::vector<Change> changes_;  // of the configuration since the checkpoint; on rank 0 only
};

}  // namespace skein
