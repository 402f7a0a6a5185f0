// The steps of a run: those that were started, whose results a GPU gives later, and those whose
// results were read.
//
// Ranks   collective. A request to stop that one rank receives travels with a step's sums
//         (StepResult::stop), so that every rank reads it after the same step, with the same number
//         of later steps already started
// Time    of a step: all the time since the step before it ended, saving and logging included, but
//         for what leave_out() takes away
// Errors  name the step (in_step.h)
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "skein/base/machine/clock.h"
#include "skein/compile/wire_use.h"
#include "skein/optim/learning_rate.h"
#include "skein/train/loop/divergence.h"
#include "skein/train/loop/rank_state.h"
#include "skein/train/loop/signals.h"
#include "skein/train/loop/training_lanes.h"

namespace skein {

class TrainingSteps {
 public:
  // All must outlive the steps.
  TrainingSteps(const PreparedRun& run, StopSignals& signals, RankState& state,
                TrainingLanes& lanes, DivergenceWatch& watch);

  // As of the checkpoint that the run begins with; without one, from step 0.
  void resume();
  void start_clock();
  void start();
  // Waits until at most `remaining` steps are under way, or one has diverged.
  void finish(int remaining);
  // Waits for those under way, which are of no use but for a request to stop that they carry.
  void drop();

  int64_t begun() const { return begun_; }  // steps that were started
  int64_t done() const { return done_; }    // steps whose results were read
  int64_t done_since_start() const { return counted_steps_; }
  int64_t tokens() const { return tokens_; }  // with labels, of all steps that are done
  bool is_stop_requested();
  Stop stop() const { return stop_; }
  bool is_out_of_time() const;  // run.stop_after_hours have passed

  // Leaves `seconds` out of the time of the next step.
  void leave_out(double seconds);
  // Of the next step's time, what saving took.
  void add_stall(double seconds) { stall_seconds_ += seconds; }
  void add_copy(double seconds) { copy_seconds_ += seconds; }

  // The collectives of the steps since this start: {"steps", "collectives"}.
  OrderedJson wire() const;

 private:
  Stop asked_for() const;  // of this rank
  void write_trace();
  void finish_one();
  struct UnderWay {
    float learning_rate;
    double wait_seconds;
    int64_t rows;  // of all ranks
  };
  StepMetrics metrics_of(const StepResult& result, const UnderWay& step);

  const PreparedRun& run_;
  StopSignals& signals_;
  RankState& state_;
  TrainingLanes& lanes_;
  DivergenceWatch& watch_;
  const LearningRateSchedule schedule_;
  const double stop_at_;  // by the clock of base/machine/machine.h; 0: never
  std::deque<UnderWay> under_way_;
  int64_t begun_ = 0, done_ = 0, tokens_ = 0;
  Stop stop_ = Stop::kNo;                        // some rank asked, and all ranks have read it
  Clock::time_point ended_;                      // the last step
  double stall_seconds_ = 0, copy_seconds_ = 0;  // since then
  Wire wire_;
  int64_t counted_steps_ = 0;  // the number of steps that wire_ covers
};

}  // namespace skein
