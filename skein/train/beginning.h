// What a run begins with: a checkpoint that rank 0 chose, the weights of model.init_from, or random
// ones.
//
// Order   construct (chooses) → accept, before anything is allocated or written → load → forget
// Errors  what choose_start, accept_checkpoint and check_source refuse
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "skein/checkpoint/checkpoint_reader.h"
#include "skein/comm/communicator.h"
#include "skein/config/config.h"
#include "skein/config/run_identity.h"
#include "skein/record/run_log.h"
#include "skein/runtime/executor.h"
#include "skein/train/resume.h"
#include "skein/train/run_inputs.h"
#include "skein/weights/model_source.h"
#include "skein/weights/training_state.h"

namespace skein {

class Beginning {
 public:
  // `lock` (of the checkpoints) and `log`: rank 0's, null on others. `config` and `world` must
  // outlive it.
  Beginning(const Config& config, Communicator& world, const RunLock* lock, RunLog* log);

  // Refuses what is not the run that it goes on from, and weights that this model would read
  // otherwise.
  void accept(const RunInputs& inputs);
  // What this run is, for its checkpoints.
  const Json& configuration() const { return configuration_; }

  const CheckpointReader* checkpoint() const { return checkpoint_.get(); }  // null: none
  const StartingPoint& start() const { return start_; }
  std::string from() const;  // path of the checkpoint or the weights; "": random ones
  RunLog::Beginning said() const;

  // Fills the weights, and of a checkpoint all that `tensors` names.
  void load(const DecoderConfig& model, const std::vector<StateTensor>& tensors,
            Executor& executor) const;
  // What was read is not needed any more.
  void forget();

 private:
  void open_source(const RunInputs& inputs);
  bool is_first() const { return world_.rank() == 0; }

  const Config& config_;
  Communicator& world_;
  StartingPoint start_;
  std::unique_ptr<CheckpointReader> checkpoint_;
  std::unique_ptr<ModelSource> source_;  // of model.init_from
  Json configuration_;
  std::vector<Change> changes_;  // since the checkpoint; rank 0's
};

}  // namespace skein
