// Watches a run for divergence: a loss or norm that is not finite, or a gradient norm that stays in
// a spike. Either ends the run, or with run.on_divergence = "roll_back" takes it back to before the
// first step that went wrong.
//
// Ranks   every rank decides alike, since all it decides from is the same on all of them
// Kept    the spikes and the number of roll-backs, in every checkpoint's manifest
// Errors  kNotFinite ends the run: in accept(), and in roll_back() after run.max_roll_backs
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "skein/record/log/spikes.h"
#include "skein/train/loop/saver.h"
#include "skein/train/loop/step_runner.h"
#include "skein/train/start/prepared_run.h"

namespace skein {

class DivergenceWatch {
 public:
  // Both must outlive the watch.
  DivergenceWatch(const PreparedRun& run, Saver& saver);

  // As of the checkpoint that the run begins with; without one, from nothing. Collective.
  void resume();
  // Whether the numbers of `step` are finite. The weights' are among them, so that every step that
  // is saved had finite ones: param_norm is the norm after the update.
  bool accept(int64_t step, const StepResult& result);
  // The gradient norm of a step that was accepted.
  SpikeDetector::Verdict observe(int64_t step, float grad_norm);

  // Whether steps went wrong, so that the run is to go back.
  bool has_diverged() const { return divergence_.has_value(); }
  struct RollBack {
    int64_t to_step;                  // or before
    int64_t last_step;                // of those that went wrong
    int64_t first_batch, last_batch;  // that they trained on
    std::string reason;
  };
  // Begins to go back; `skipped`: so far.
  RollBack roll_back(const SkippedBatches& skipped);

  const SpikeDetector& spikes() const { return spikes_; }
  int64_t roll_backs() const { return roll_backs_; }

 private:
  SpikeDetector stored_spikes(const TrainingState& state) const;

  struct Divergence {
    int64_t first_step;
    int64_t last_step;
    std::string reason;
  };
  const PreparedRun& run_;
  Saver& saver_;
  const bool rolls_back_;
  SpikeDetector spikes_;
  int64_t roll_backs_ = 0;
  std::optional<Divergence> divergence_;
};

}  // namespace skein
