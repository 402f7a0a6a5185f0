// What a trainer does where a step went wrong: it ends the run, or takes it back to before that
// step. Every rank decides alike, since all it decides from is the same on all of them.
#include <cmath>

#include "skein/base/machine/clock.h"
#include "skein/base/text/json_text.h"
#include "skein/train/loop/trainer.h"
#include "skein/train/start/consensus.h"

namespace skein {
namespace {

// fmt would print the sign bit of a NaN, which depends on the machine.
std::string name_of(double value) { return std::isnan(value) ? "nan" : fmt::format("{:g}", value); }

}  // namespace

// Looks at the weights as well, so that every step that is saved had finite ones: param_norm is the
// norm after the update.
bool Trainer::is_finite_step(const StepResult& result) {
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm) &&
      std::isfinite(result.param_norm)) {
    return true;
  }
  const int64_t step = step_ + 1;
  const std::string found =
      fmt::format("the loss is {}, the gradient norm {} and the norm of the weights after it {}",
                  name_of(result.loss), name_of(result.grad_norm), name_of(result.param_norm));
  if (config_.run.on_divergence == "roll_back") {
    divergence_ = {step, step, found};
    return false;
  }
  saver_->end();  // all ranks see the same result, so all come here
  fail(ErrorCode::kNotFinite,
       "step {}: {}: expected finite numbers. {}; lower optimizer.learning_rate or look at the "
       "documents of this step with `skein why {} --step {}`",
       step, found,
       saver_->good_step() > 0
           ? fmt::format("The newest checkpoint is of step {}", saver_->good_step())
           : "Nothing was saved",
       config_.run.dir, step);
}

SpikeDetector Trainer::spikes_after(const TrainingState& state) {
  if (!state.monitor.is_null()) return SpikeDetector::from_json(state.monitor);
  // The checkpoint is of an older version. Only rank 0 writes, and may read, the metrics.
  const fs::path metrics = fs::path(config_.run.dir) / "metrics.jsonl";
  const std::string own =
      is_first() ? exact_json(spikes_until(metrics, state.step).to_json(), "the spikes of the run")
                 : "";
  return SpikeDetector::from_json(
      parse_json(text_of_rank_0(world_, own), "rank 0's watch of the gradient norm"));
}

void Trainer::watch_spike(const SpikeDetector::Verdict& verdict) {
  constexpr int64_t kSteps = SpikeDetector::kPersistentSteps;
  if (config_.run.on_divergence != "roll_back" || verdict.spike_steps != kSteps) return;
  divergence_ = {step_ - kSteps + 1, step_,
                 fmt::format("the gradient norm has been in a spike for {} steps", kSteps)};
}

void Trainer::roll_back() {
  const Divergence divergence = *std::exchange(divergence_, std::nullopt);
  // Steps that were started since are of no use, but for a request to stop that they carry.
  for (; !under_way_.empty(); under_way_.pop_front()) {
    stop_ = std::max(stop_, runner_->finish().stop);
  }
  saver_->end();
  const int64_t first = skipped_.batch_of(divergence.first_step),
                last = skipped_.batch_of(divergence.last_step);
  if (roll_backs_ >= config_.run.max_roll_backs) {
    fail(ErrorCode::kNotFinite,
         "step {}: {}, after {} roll-backs, which is run.max_roll_backs. It does not go away with "
         "the batches: lower optimizer.learning_rate, or look at the documents with `skein why {} "
         "--batch {}`",
         divergence.last_step, divergence.reason, roll_backs_, config_.run.dir, first);
  }
  beginning_->go_back(divergence.first_step - 1, *inputs_,
                      locks_ ? &locks_->checkpoints() : nullptr, log_ ? &*log_ : nullptr);
  skipped_.add(first, last);
  ++roll_backs_;
  restore();
  if (log_) {
    log_->roll_back({.step = divergence.last_step,
                     .to_step = step_,
                     .from = beginning_->checkpoint() ? beginning_->from() : "",
                     .batches = {first, last},
                     .skipped = skipped_.to_json(),
                     .count = roll_backs_,
                     .reason = divergence.reason});
  }
  beginning_->forget();
  step_clock_ = Clock::now();
}

}  // namespace skein
