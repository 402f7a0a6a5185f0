#include "skein/train/beginning.h"

#include "skein/base/log.h"
#include "skein/train/consensus.h"
#include "skein/weights/init_source.h"
#include "skein/weights/initialize.h"

namespace skein {

// Only rank 0 searches. The others use its choice, because a search on each rank could see another
// state of the folder.
Beginning::Beginning(const Config& config, Communicator& world, const RunLock* lock, RunLog* log)
    : config_(config), world_(world) {
  StartingPoint own;
  if (is_first()) {
    own = choose_start(
        *lock, checkpoint_dir(config), config.run.resume,
        [log](const CheckpointInfo& info, const Error& why) { log->skip_checkpoint(info, why); });
  }
  start_ = start_of_rank_0(world, std::move(own));
  origin_ = start_.checkpoint;
  if (!start_.checkpoint.empty()) {
    checkpoint_ = std::make_unique<CheckpointReader>(start_.checkpoint);
  }
}

void Beginning::accept(const RunInputs& inputs) {
  const DecoderConfig& model = inputs.model();
  if (!checkpoint_ && !config_.model.init_from.empty()) open_source(inputs);
  if (is_first()) {
    configuration_ = run_configuration(config_, model, inputs.content());
    if (checkpoint_) {
      changes_ = accept_checkpoint(*checkpoint_, configuration_,
                                   needed_tensors(model, config_.precision), config_.run);
      const std::string derived = schedule_that_follows(config_, changes_);
      if (!derived.empty()) log::warn("{}", derived);
    }
  }
  configuration_ = parse_json(text_of_rank_0(world_, is_first() ? configuration_.dump() : ""),
                              "what rank 0 says of the run");
}

// Only rank 0 chooses the checkpoint: the run that owns the weights may be saving meanwhile, and
// another rank could find a newer one.
void Beginning::open_source(const RunInputs& inputs) {
  if (is_first()) {
    require_init_from(config_.model.init_from);
    source_ = std::make_unique<ModelSource>(config_.model.init_from);
    check_source(*source_, inputs.model(), inputs.tokenizer(), config_.run.accept_changes);
  }
  const std::string path = text_of_rank_0(world_, is_first() ? source_->path().string() : "");
  if (!is_first()) {
    source_ = std::make_unique<ModelSource>(ModelSource::opened_elsewhere(path));
  }
}

void Beginning::go_back(int64_t step, const RunInputs& inputs, const RunLock* lock, RunLog* log) {
  StartingPoint own;
  if (is_first()) {
    own = choose_before(
        *lock, checkpoint_dir(config_), step, start_.timeline, origin_,
        [log](const CheckpointInfo& info, const Error& why) { log->skip_checkpoint(info, why); });
  }
  start_ = start_of_rank_0(world_, std::move(own));
  if (!start_.checkpoint.empty()) {
    checkpoint_ = std::make_unique<CheckpointReader>(start_.checkpoint);
  } else if (!config_.model.init_from.empty()) {
    open_source(inputs);
  }
}

std::string Beginning::from() const {
  return checkpoint_ ? checkpoint_->path().string() : config_.model.init_from;
}

RunLog::Beginning Beginning::said() const { return {.why = start_.why, .changes = changes_}; }

void Beginning::load(const DecoderConfig& model, const std::vector<StateTensor>& tensors,
                     Executor& executor) const {
  if (checkpoint_) {
    restore_state(*checkpoint_, tensors, executor);
    return;
  }
  for (const StateTensor& tensor : tensors) {
    if (tensor.spec.group == "optimizer") executor.fill_zero(tensor.name);
  }
  if (source_) {
    source_->load_parameters(model, executor);
  } else {
    initialize_parameters(executor, model,
                          {.seed = static_cast<uint64_t>(config_.run.seed),
                           .std = config_.model.init_std,
                           .scaled = config_.model.scaled_init});
  }
}

void Beginning::forget() {
  checkpoint_.reset();
  source_.reset();
  start_.parent.reset();
}

}  // namespace skein
