#include "skein/train/loop/saver.h"

#include <algorithm>
#include <cctype>

#include "skein/train/start/consensus.h"

namespace skein {

Saver::Saver(const PreparedRun& run)
    : run_(run), writer_(checkpoint_dir(run.config), options(), specs_of(run.programs.tensors)) {
  wait_for_all(run_.world, "files of an earlier start are gone");
}

CheckpointWriterOptions Saver::options() const {
  const Config& config = run_.config;
  CheckpointWriterOptions options;
  options.retention = {config.checkpoint.keep, config.checkpoint.permanent_every_steps,
                       config.checkpoint.best_by};
  options.async = config.checkpoint.async;
  options.rank = run_.world.rank();
  options.num_ranks = run_.world.size();
  const std::string& start_id = run_.launch.start_id;
  std::transform(start_id.begin(), start_id.end(), std::back_inserter(options.save_id),
                 [](unsigned char letter) { return std::tolower(letter); });
  options.copy = [this](void* to, const void* from, size_t bytes) {
    run_.device->download(to, from, static_cast<int64_t>(bytes));
  };
  if (run_.locks) options.before_commit = [this] { run_.locks->require(); };
  options.should_abort = [this] { return peer_lost_.load(); };
  return options;
}

void Saver::go_on_from(int64_t step, std::shared_ptr<const CheckpointHold> parent) {
  saved_step_ = good_step_ = step;
  parent_ = std::move(parent);
}

void Saver::save(TrainingState state, const Executor& executor) {
  saved_step_ = state.step;
  if (run_.log) run_.log->checkpoint_begin(saved_step_);
  writer_.begin(std::move(state), state_views(executor, run_.programs.tensors));
  // A rank's storage may be slow. This barrier waits longer than the next step's collectives would.
  wait_for_all(run_.world, "every rank has begun to save");
}

void Saver::collect() {
  while (const auto saved = writer_.poll()) {
    if (saved->ok()) {
      Result<SavedCheckpoint> copy = *saved;
      if (run_.log) run_.log->checkpoint_commit(copy.value());
      good_step_ = copy.value().step;
      parent_.reset();  // this run has a checkpoint of its own
      failure_.reset();
    } else {
      failure_ = saved->error();
      // The state itself is bad, or the folder is another run's: later saves would fail as well.
      const ErrorCode code = failure_->code();
      if (code == ErrorCode::kNotFinite || code == ErrorCode::kBusy) throw *failure_;
      if (run_.log) run_.log->checkpoint_failed(saved_step_, saved->error());
    }
  }
}

void Saver::end() {
  writer_.wait();
  collect();
}

void Saver::require_saved() const {
  if (!failure_) return;
  const std::string advice =
      failure_->code() == ErrorCode::kNoSpace
          ? "free space there, lower checkpoint.keep or set checkpoint.dir to another disk; "
          : "";
  const std::string then = good_step_ > 0 ? fmt::format("resumes from step {}", good_step_)
                                          : std::string("begins again");
  fail(failure_->code(), "{}; {}the same command then {}", failure_->what(), advice, then);
}

}  // namespace skein
