#include "skein/train/start/beginning.h"

#include <algorithm>

#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/replica/newest_whole.h"
#include "skein/train/start/consensus.h"
#include "skein/weights/init_source.h"
#include "skein/weights/initialize.h"

namespace skein {

// Only rank 0 searches. The others use its choice, because a search on each rank could see another
// state of the folder.
Beginning::Beginning(const Config& config, Communicator& world, const RunLock* lock, RunLog* log,
                     const ReplicaPlace* place)
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
    stored_step_ = checkpoint_->state().step;
  }
  if (config.checkpoint.memory_every_steps != 0) look_in_memory(place);
}

// All ranks know what all have found, and choose alike.
void Beginning::look_in_memory(const ReplicaPlace* place) {
  const std::string own = place == nullptr ? "" : look_at_replicas(*place).text();
  const std::vector<std::string> texts = texts_of_all(world_, own);
  const auto without = std::count(texts.begin(), texts.end(), "");
  keeps_copies_ = without == 0;
  if (!keeps_copies_) {
    if (is_first() && without < std::ssize(texts)) {
      log::warn("no copies of the state are kept in memory: {} of {} ranks have no place for them",
                without, texts.size());
    }
    return;
  }
  std::vector<ReplicaFindings> findings;
  for (const std::string& text : texts) {
    findings.push_back(ReplicaFindings::parse(text));
    if (!is_first()) continue;
    for (const std::string& why : findings.back().bad) log::warn("{}; it is passed over", why);
  }
  const auto save = newest_whole(findings);
  next_copy_ = next_number(findings, save);
  const auto in_storage = std::pair(start_.timeline.number, stored_step_);
  if (!save || (checkpoint_ && std::pair(save->timeline, save->step) <= in_storage)) return;
  std::string description;
  if (is_first()) {
    const auto described = try_run([&] { return describe_save(*save, *place); });
    if (described.ok()) {
      description = Result<std::string>(described).value();
    } else {
      log::warn("{} cannot be read, and is passed over: {}", save->name(),
                described.error().what());
    }
  }
  description = text_of_rank_0(world_, description);
  if (description.empty()) return;
  checkpoint_ = open_save(*save, *place, description);
  start_.timeline = checkpoint_->state().timeline;
  start_.why = stored_step_ == 0
                   ? "no checkpoint is in storage so far"
                   : fmt::format("newer than the newest checkpoint, of step {}", stored_step_);
}

void Beginning::accept(const RunInputs& inputs) {
  const DecoderConfig& model = inputs.model();
  if (!checkpoint_ && !config_.model.init_from.empty()) open_source(inputs);
  if (is_first()) {
    configuration_ = run_configuration(config_, model, inputs.content());
    if (checkpoint_) {
      changes_ = accept_checkpoint(*checkpoint_, configuration_, needed_tensors(model, config_),
                                   config_.run);
      for (const std::string& note : {schedule_that_follows(config_, changes_, step() + 1),
                                      decay_that_has_ended(config_, changes_, step() + 1)}) {
        if (!note.empty() && step() < config_.run.steps) log::warn("{}", note);
      }
    }
  }
  configuration_ = parse_json(
      text_of_rank_0(world_,
                     is_first() ? exact_json(configuration_, "the configuration of the run") : ""),
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
  stored_step_ = 0;
  if (!start_.checkpoint.empty()) {
    checkpoint_ = std::make_unique<CheckpointReader>(start_.checkpoint);
    stored_step_ = checkpoint_->state().step;
  } else if (!config_.model.init_from.empty()) {
    open_source(inputs);
  }
}

int64_t Beginning::step() const { return checkpoint_ ? checkpoint_->state().step : 0; }

std::string Beginning::from() const {
  return checkpoint_ ? checkpoint_->path().string() : config_.model.init_from;
}

RunLog::StartNote Beginning::note() const { return {.why = start_.why, .changes = changes_}; }

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
                           .std = model.initializer_range,
                           .scaled = config_.model.scaled_init});
  }
}

void Beginning::forget() {
  checkpoint_.reset();
  source_.reset();
  start_.parent.reset();
}

}  // namespace skein
