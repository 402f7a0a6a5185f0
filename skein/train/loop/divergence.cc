#include "skein/train/loop/divergence.h"

#include <cmath>
#include <utility>

#include "skein/base/text/json_text.h"
#include "skein/train/start/consensus.h"

namespace skein {
namespace {

// fmt would print the sign bit of a NaN, which depends on the machine.
std::string name_of(double value) { return std::isnan(value) ? "nan" : fmt::format("{:g}", value); }

}  // namespace

DivergenceWatch::DivergenceWatch(const PreparedRun& run, Saver& saver)
    : run_(run), saver_(saver), rolls_back_(run.config.run.on_divergence == "roll_back") {
  if (const CheckpointReader* checkpoint = run.beginning.checkpoint()) {
    roll_backs_ = checkpoint->state().roll_backs;
  }
}

void DivergenceWatch::resume() {
  const CheckpointReader* checkpoint = run_.beginning.checkpoint();
  spikes_ = checkpoint ? stored_spikes(checkpoint->state()) : SpikeDetector();
}

SpikeDetector DivergenceWatch::stored_spikes(const TrainingState& state) const {
  if (!state.monitor.is_null()) return SpikeDetector::from_json(state.monitor);
  // The checkpoint is of an older version. Only rank 0 writes, and may read, the metrics.
  const fs::path metrics = fs::path(run_.config.run.dir) / "metrics.jsonl";
  const std::string own = run_.is_first() ? exact_json(spikes_until(metrics, state.step).to_json(),
                                                       "the spikes of the run")
                                          : "";
  return SpikeDetector::from_json(
      parse_json(text_of_rank_0(run_.world, own), "rank 0's watch of the gradient norm"));
}

bool DivergenceWatch::accept(int64_t step, const StepResult& result) {
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm) &&
      std::isfinite(result.param_norm)) {
    return true;
  }
  const std::string found =
      fmt::format("the loss is {}, the gradient norm {} and the norm of the weights after it {}",
                  name_of(result.loss), name_of(result.grad_norm), name_of(result.param_norm));
  if (rolls_back_) {
    divergence_ = {step, step, found};
    return false;
  }
  saver_.end();  // all ranks see the same result, so all come here
  fail(ErrorCode::kNotFinite,
       "step {}: {}: expected finite numbers. {}; lower optimizer.learning_rate, which was {:.3g} "
       "in this step, or look at its documents with `skein why {} --step {}`",
       step, found,
       saver_.good_step() > 0
           ? fmt::format("The newest checkpoint is of step {}", saver_.good_step())
           : "Nothing was saved",
       learning_rate_schedule(run_.config.optimizer).at(step), run_.config.run.dir, step);
}

SpikeDetector::Verdict DivergenceWatch::observe(int64_t step, float grad_norm) {
  constexpr int64_t kSteps = SpikeDetector::kPersistentSteps;
  const SpikeDetector::Verdict verdict = spikes_.observe(grad_norm);
  if (rolls_back_ && verdict.spike_steps == kSteps) {
    divergence_ = {step - kSteps + 1, step,
                   fmt::format("the gradient norm has been in a spike for {} steps", kSteps)};
  }
  return verdict;
}

DivergenceWatch::RollBack DivergenceWatch::roll_back(const SkippedBatches& skipped) {
  const Divergence divergence = *std::exchange(divergence_, std::nullopt);
  const int64_t first = skipped.batch_of(divergence.first_step),
                last = skipped.batch_of(divergence.last_step);
  if (roll_backs_ >= run_.config.run.max_roll_backs) {
    fail(ErrorCode::kNotFinite,
         "step {}: {}, after {} roll-backs, which is run.max_roll_backs. It does not go away with "
         "the batches: lower optimizer.learning_rate, or look at the documents with `skein why {} "
         "--batch {}`",
         divergence.last_step, divergence.reason, roll_backs_, run_.config.run.dir, first);
  }
  ++roll_backs_;
  return {divergence.first_step - 1, divergence.last_step, first, last, divergence.reason};
}

}  // namespace skein
