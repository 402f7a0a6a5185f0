// A training run, on one of its ranks: set-up, the loop, and what is written on the way.
//
// Order  lock the run folder → read model, tokenizer, corpora → choose the checkpoint to go on from
//        → lay out the ranks → accept what the run goes on from → plan → allocate → restore or
//        initialise → write the run folder → loop(step, log, checkpoint, validate) → last
//        checkpoint
// Ranks  each has its lanes, its part of the state and of every checkpoint. Rank 0 alone writes
//        logs, chooses checkpoints and commits them; what a signal asks of one rank, all do after
//        the same step
// Errors everything that can be refused is refused before the first step. A loss, or weights,
//        that are not finite end the run with kInvalid; nothing is saved after it, but a save that
//        was begun before is ended, unless a rank was lost
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "skein/compile/wire.h"
#include "skein/config/config.h"
#include "skein/record/run_log.h"
#include "skein/train/beginning.h"
#include "skein/train/run_inputs.h"
#include "skein/train/saver.h"
#include "skein/train/signals.h"
#include "skein/train/step_runner.h"

namespace skein {

enum class TrainOutcome { kFinished, kStopped };

class Trainer {
 public:
  // `world`: all ranks of the run; it must outlive the trainer. `start_id`: the same on all of them
  // and another one at each start. `local_rank`: among the ranks of this node; its GPU.
  Trainer(const Config& config, Communicator& world, std::string start_id = "alone",
          int local_rank = 0);
  ~Trainer();

  // Runs to run.steps, or until a signal asks to stop; either way the state is saved.
  TrainOutcome run();

 private:
  void lay_out();
  void allocate();
  void agree_on_algorithms();
  void begin();
  LoaderOptions lanes() const;
  TrainOutcome train_to_the_end();
  void start_step();
  void write_trace();
  void finish_steps(int remaining);
  void finish_step();
  void check_finite(const StepResult& result);
  void save_checkpoint();
  void validate();
  bool due(int64_t every_steps) const { return every_steps > 0 && begun_ % every_steps == 0; }
  double measure_ceiling(DType dtype);
  bool stop_requested();
  void leave_out(double seconds);
  bool is_first() const { return world_.rank() == 0; }

  Config config_;
  Communicator& world_;
  std::string start_id_;
  int local_rank_;
  std::optional<RunLocks> locks_;  // rank 0's
  StopSignals signals_;
  std::optional<RunLog> log_;  // rank 0's
  std::unique_ptr<RunInputs> inputs_;
  std::unique_ptr<Beginning> beginning_;
  ParallelLayout layout_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> device_world_;  // of the GPUs of several ranks; else null
  Communicators communicators_;
  ProgramSet programs_;
  std::unique_ptr<StepRunner> runner_;
  Json algorithms_;  // of the run, for checkpoints
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Loader> loader_;
  LearningRateSchedule schedule_;
  bool told_validation_repeats_ = false;
  bool stop_requested_ = false;  // as all ranks know
  // Begun, and not read back yet: a device may run behind the host.
  struct StepUnderWay {
    float learning_rate;
    double wait_seconds;
  };
  std::deque<StepUnderWay> under_way_;
  std::chrono::steady_clock::time_point step_clock_;  // since the last step ended
  int64_t begun_ = 0;                                 // updates begun
  int64_t step_ = 0;                                  // updates known to be done
  int64_t tokens_ = 0;
  Wire wire_;                  // of the training steps since this start
  int64_t counted_steps_ = 0;  // that it is of
  double stall_seconds_ = 0;   // of saving, since the last step
};

}  // namespace skein
