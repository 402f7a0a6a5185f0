// A training run on one of its ranks: set-up, the training loop, logging and checkpoints.
//
// Order  lock the run folder; read the tokenizer and model; choose the checkpoint to resume from;
//        lay out the ranks; open the corpora; check that the checkpoint or the weights suit this
//        run; plan; allocate; agree on kernel algorithms; restore or initialise the state; write
//        the run folder; loop(step, log, validate, checkpoint); save the last checkpoint
// Ranks  each rank has its lanes, and its part of the state and of every checkpoint. Rank 0 alone
//        writes the run's logs, chooses checkpoints and commits them. A stop signal that one rank
//        receives stops all ranks after the same step
// State  checked after every update and before the next one, and before it is saved (state_check.h)
// Errors every check of the inputs comes before the first step. A loss or norm that is not finite
//        ends the run with kNotFinite, and no later state is saved; with run.on_divergence =
//        "roll_back" the run goes on from a state before it (divergence.cc). A save that is already
//        under way is completed, unless a rank was lost
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/files/lost_pages.h"
#include "skein/compile/wire.h"
#include "skein/config/batches.h"
#include "skein/config/config.h"
#include "skein/data/lanes/skipped_batches.h"
#include "skein/record/log/run_log.h"
#include "skein/record/log/spikes.h"
#include "skein/train/loop/best_loss.h"
#include "skein/train/loop/memory_saver.h"
#include "skein/train/loop/saver.h"
#include "skein/train/loop/signals.h"
#include "skein/train/loop/state_check.h"
#include "skein/train/loop/step_runner.h"
#include "skein/train/start/beginning.h"
#include "skein/train/start/run_inputs.h"

namespace skein {

enum class TrainOutcome { kFinished, kStopped, kRegrouped };

class Trainer {
 public:
  // `world`: all ranks of the run; it must outlive the trainer. `start_id`: the same on all ranks,
  // and different at each start. `local_rank`: the index among the ranks of this node, which
  // selects the GPU. `replicas`: nothing: no copies are kept in memory. `launched`: what came
  // before, for the run's record.
  Trainer(const Config& config, Communicator& world, std::string start_id = "alone",
          int local_rank = 0, std::optional<ReplicaPlace> replicas = {},
          const Launched& launched = {});
  ~Trainer();

  // Trains to run.steps or until a signal asks to stop, and saves the state in both cases.
  TrainOutcome run();

  // Validates the state that training would begin with, in place of run(). Nothing is saved.
  struct Validated {
    std::string set;   // the name of a data.validation_set; empty: data.validation
    std::string path;  // of the corpus
    double loss = 0;
    int64_t num_labels = 0;
    int64_t num_batches = 0;
    bool is_all = true;  // of the corpus
    double seconds = 0;
  };
  std::vector<Validated> validate_all();
  // The weights that the run begins with: path of a checkpoint or of a folder; "": random ones.
  const std::string& weights() const { return weights_; }

 private:
  void lay_out();
  void allocate();
  void tell_settings() const;
  void tell_arenas() const;
  void warn_of_lack_of_disk();
  bool has_memory_for_copies(const StepSpec& spec);
  void agree_on_algorithms();
  void begin();
  int64_t stored_lanes() const;
  std::vector<MixtureState> exchange_lanes(std::span<const MixtureState> states,
                                           std::span<const int64_t> lanes);
  void save_lanes(TrainingState& state);
  TrainOutcome train_to_the_end();
  void start_step();
  void tell_rows(int64_t rows);
  void write_trace();
  void finish_steps(int remaining);
  void finish_step();
  void restore();
  bool is_finite_step(const StepResult& result);
  SpikeDetector spikes_after(const TrainingState& state);
  void watch_spike(const SpikeDetector::Verdict& verdict);
  void roll_back();
  TrainingState state_to_save();
  TrainingState described_state();
  void save_checkpoint();
  void save_to_memory();
  bool regroups_in_memory();
  void agree_on_validation(bool tells);
  std::string validation_times() const;
  void validate();
  Validated validate(RunInputs::ValidationSet& set);
  bool due(int64_t every_steps) const { return every_steps > 0 && begun_ % every_steps == 0; }
  double ceiling(DType dtype);
  double measure_ceiling(DType dtype);
  bool stop_requested();
  int stop_signal() const;
  void note_saves();
  bool has_nothing_to_do() const {
    return (step_ >= config_.run.steps || best_.ends_run()) && saver_->saved_step() == step_;
  }
  void leave_out(double seconds);
  void check_corpora();
  bool is_first() const { return world_.rank() == 0; }

  Config config_;
  Communicator& world_;
  std::string start_id_;
  int local_rank_;
  std::optional<RunLocks> locks_;  // on rank 0 only
  StopSignals signals_;
  LostPages lost_pages_;
  std::optional<RunLog> log_;  // on rank 0 only
  std::unique_ptr<RunInputs> inputs_;
  std::unique_ptr<Beginning> beginning_;
  ParallelLayout layout_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> device_world_;  // the group of GPUs; else null
  Communicators communicators_;
  ProgramSet programs_;
  std::unique_ptr<StepRunner> runner_;
  Json algorithms_;  // the choices of agree_on_algorithms(), for checkpoints
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<StateCheck> check_;    // null: the state is not checked
  std::optional<ReplicaPlace> place_;    // nothing: no copies are kept in memory
  std::unique_ptr<MemorySaver> copies_;  // null: the same
  std::unique_ptr<Loader> loader_;
  LearningRateSchedule schedule_;
  BatchRamp ramp_;
  BestLoss best_;
  bool only_validates_;  // nothing is trained or saved
  std::string weights_;
  double ceiling_flops_ = 0;  // of all ranks
  Stop stop_ = Stop::kNo;     // some rank asked, and all ranks have read it
  // A step that was started and whose result was not read yet: a GPU runs asynchronously.
  struct StepUnderWay {
    float learning_rate;
    double wait_seconds;
    int64_t rows;  // of all ranks
  };
  std::deque<StepUnderWay> under_way_;
  std::chrono::steady_clock::time_point step_clock_;     // when the last step ended
  std::chrono::steady_clock::time_point corpora_clock_;  // when corpora were last looked at
  int64_t begun_ = 0;                                    // steps that were started
  int64_t step_ = 0;                                     // steps whose results were read
  int64_t tokens_ = 0;
  int64_t rows_of_step_ = 0;  // of the newest step that was started; 0: none was
  SpikeDetector spikes_;      // the same on all ranks, since gradient norms are
  SkippedBatches skipped_;    // that no step trains on
  int64_t roll_backs_ = 0;
  // Steps that went wrong, so that the run is to go back to before the first of them.
  struct Divergence {
    int64_t first_step;
    int64_t last_step;
    std::string reason;
  };
  std::optional<Divergence> divergence_;
  Wire wire_;                  // collectives of the training steps since this start
  int64_t counted_steps_ = 0;  // the number of steps that wire_ covers
  double stall_seconds_ = 0;   // spent in saving since the last step
  double copy_seconds_ = 0;    // spent in copying the state to memory since then
};

}  // namespace skein
