// The training loop of a run on one of its ranks: loop(step, validate, save), and what it does
// before the first step and after the last one.
//
// Order   the constructor allocates, restores or initialises the state, and only then writes the
//         run folder; run() trains, and saves the last checkpoint
// Ranks   each rank has its lanes, and its part of the state and of every checkpoint. Rank 0 alone
//         writes the run's logs and commits checkpoints. A stop signal that one rank receives stops
//         all ranks after the same step
// Errors  a loss or norm that is not finite ends the run with kNotFinite, and no later state is
//         saved; with run.on_divergence = "roll_back" the run resumes from a state before it
//         (divergence.h). A save that is already under way is completed, unless a rank was lost
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "skein/base/machine/clock.h"
#include "skein/train/loop/divergence.h"
#include "skein/train/loop/rank_state.h"
#include "skein/train/loop/signals.h"
#include "skein/train/loop/task_evaluation.h"
#include "skein/train/loop/training_lanes.h"
#include "skein/train/loop/training_steps.h"
#include "skein/train/loop/validation.h"
#include "skein/train/start/prepared_run.h"

namespace skein {

enum class TrainOutcome { kFinished, kStopped, kRegrouped };

class TrainingLoop {
 public:
  // Both must outlive the loop.
  TrainingLoop(PreparedRun& run, StopSignals& signals);

  // Trains to run.steps or until a signal asks to stop, and saves the state in both cases.
  TrainOutcome run();

  // Validates the state that training would begin with, in place of run(). Nothing is saved.
  std::vector<Validated> validate_only() { return validation_.validate(steps_.done()); }
  // The weights that the run begins with: path of a checkpoint or of a folder; "": random ones.
  const std::string& weights() const { return weights_; }

 private:
  void begin();
  void restore();
  TrainOutcome train_to_the_end();
  TrainOutcome end();
  void roll_back();
  void validate();
  void evaluate(const std::function<void()>& work);
  void check_corpora();
  TrainingState described_state() const;
  TrainingState state_to_save();
  void save_checkpoint();
  void save_to_memory();
  bool regroups_in_memory();
  void note_saves();
  bool due(int64_t every_steps) const {
    return every_steps > 0 && steps_.begun() % every_steps == 0;
  }
  bool has_nothing_to_do();

  PreparedRun& run_;
  StopSignals& signals_;
  RankState state_;
  TrainingLanes lanes_;
  DivergenceWatch watch_;
  Validation validation_;
  TaskEvaluation evaluation_;
  TrainingSteps steps_;
  Clock::time_point corpora_checked_;
  std::string weights_;
};

}  // namespace skein
