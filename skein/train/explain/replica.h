// One rank that holds all of a run's model and trains its steps alone, for looking into what the
// run did.
//
// Memory   weights, moments and gradients of the whole model on one device. Error{kNoSpace} where
//          they do not fit, before anything is allocated
// Numbers  with the run's own batch and reduction width a step gives the same bits as the run's,
//          where that has neither tensor nor context ranks; with those, the same to rounding
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "skein/checkpoint/find/reader.h"
#include "skein/config/config.h"
#include "skein/train/loop/step_runner.h"
#include "skein/train/start/run_inputs.h"
#include "skein/weights/state_tensors.h"

namespace skein {

// `config` for one rank that adds gradients as `reduction_width` virtual ranks do.
Config config_of_replica(Config config, int64_t reduction_width);
// `config` for one rank, and steps of one row.
Config config_of_one_row(Config config);

class Replica {
 public:
  // `config`: of one of these functions. `checkpoint` gives the algorithms of kernels, and is read
  // no more afterwards; null: there is none. The others must outlive the replica.
  Replica(const Config& config, const DecoderConfig& model, Device& device,
          const CheckpointReader* checkpoint);

  // The state of the checkpoint, or where it is null what the run began with.
  void load(const CheckpointReader* checkpoint);

  // Bytes by the name of the tensor; put() takes what take() of another replica gave.
  using State = std::map<std::string, std::vector<std::byte>>;
  State take() const;
  void put(const State& state);

  StepRunner& runner() { return *runner_; }

 private:
  const Config& config_;
  const DecoderConfig& model_;
  ProgramSet programs_;
  std::vector<StateTensor> tensors_;
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace skein
