// Saves of one rank's state in memory: when they are due, and what they cost.
//
// Due      after every checkpoint.memory_every_steps steps, or where that is -1, as seldom as keeps
//          their cost below kCopyShare of the time; in any case not before the last one is whole.
//          All ranks decide alike, from what they told each other with the step's sums
// Cost     measured by each save but the first of each slot, which touches the memory; a mean in
//          which the newest counts kNewest
// Errors   a copy that cannot be made is told of once; training goes on without copies
#pragma once

#include <chrono>

#include "skein/replica/writer.h"
#include "skein/runtime/executor.h"
#include "skein/train/loop/step_runner.h"
#include "skein/train/start/prepared_run.h"

namespace skein {

class MemorySaver {
 public:
  static constexpr double kNewest = 0.25;

  // `run`, which has a place for copies, must outlive it.
  explicit MemorySaver(const PreparedRun& run);
  // What this rank tells the others with its next step.
  CopyReport report();
  // What all told in a step that took so long here.
  void hear(const StepResult& result, double step_seconds);
  bool due(int64_t step) const;
  // The run goes on after `step`.
  void go_on_from(int64_t step) { last_ = step; }
  void save(TrainingState state, const Executor& executor);
  // The same, at the end of a generation that stops for another machine: returns once the copy is
  // whole everywhere. Collective; false on all ranks where it is not after kPatience: the state is
  // to be saved elsewhere.
  bool save_and_wait(TrainingState state, const Executor& executor);
  static constexpr std::chrono::seconds kPatience{60};

 private:
  bool is_whole_everywhere();
  const PreparedRun& run_;
  const bool on_processor_;  // what happens beside the training takes time from it
  ReplicaWriter writer_;
  bool failed_ = false;             // here
  bool whole_ = true;               // the newest save, everywhere
  int cold_saves_ = kReplicaSlots;  // until the memory of each slot was touched
  bool measures_ = false;
  double share_ = -1;        // of a step that a copy takes; not known yet
  double step_seconds_ = 0;  // the last one's
  int64_t last_ = 0;         // step of the newest save
  int64_t every_steps_ = 1;
};

}  // namespace skein
