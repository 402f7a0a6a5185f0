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

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "skein/checkpoint/checkpoint_writer.h"
#include "skein/compile/wire.h"
#include "skein/config/config.h"
#include "skein/config/data_feed.h"
#include "skein/config/run_identity.h"
#include "skein/record/run_log.h"
#include "skein/train/resume.h"
#include "skein/train/signals.h"
#include "skein/train/step_runner.h"
#include "skein/weights/init_source.h"
#include "skein/weights/training_state.h"

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
  void open_model();
  void open_data();
  void accept_beginning();
  RunContent content() const;
  void allocate();
  void agree_on_algorithms();
  void begin_state();
  void choose_checkpoint();
  void lay_out();
  LoaderOptions lanes() const;
  void restore();
  void begin_run(const std::string& from, const Json& monitor = nullptr);
  void start_loader(std::span<const LaneState> lanes);
  TrainOutcome train_to_the_end();
  void start_step();
  void write_trace();
  void finish_steps(int remaining);
  void finish_step();
  void check_finite(const StepResult& result);
  void save_checkpoint();
  void collect_saves();
  void end_saves();
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
  std::optional<RunLock> lock_;              // rank 0's
  std::optional<RunLock> checkpoints_lock_;  // rank 0's
  StopSignals signals_;
  std::optional<RunLog> log_;  // rank 0's
  std::unique_ptr<Tokenizer> tokenizer_;
  DecoderConfig model_;
  std::unique_ptr<DataFeed> training_data_;
  std::unique_ptr<DataFeed> validation_data_;
  std::unique_ptr<ValidationBatches> validation_batches_;
  StartingPoint start_;
  std::unique_ptr<CheckpointReader> checkpoint_;  // to go on from, until that is done
  std::unique_ptr<ModelSource> source_;           // of initial weights, until they are loaded
  Json configuration_;                            // what this run is, for its checkpoints
  std::vector<Change> changes_;                   // since the checkpoint; rank 0's
  ParallelLayout layout_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> device_world_;  // of the GPUs of several ranks; else null
  Communicators communicators_;
  ProgramSet programs_;
  std::unique_ptr<StepRunner> runner_;
  Json algorithms_;  // of the run, for checkpoints
  std::vector<StateTensor> state_;
  std::atomic<bool> peer_lost_ = false;  // saves need not wait for other ranks any more
  std::unique_ptr<CheckpointWriter> writer_;
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
  Wire wire_;                         // of the training steps since this start
  int64_t counted_steps_ = 0;         // that it is of
  int64_t saved_step_ = 0;            // of the newest save that was begun
  int64_t good_step_ = 0;             // of the newest that is known to be complete
  double stall_seconds_ = 0;          // of saving, since the last step
  std::optional<Error> failed_save_;  // of the newest save that ended
};

}  // namespace skein
