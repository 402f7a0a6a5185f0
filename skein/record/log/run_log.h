// All output of a run: the progress line, metrics.jsonl, events.jsonl, TensorBoard and spike
// alarms. The training loop reports what happened, and RunLog decides where it is written.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "skein/base/machine/clock.h"
#include "skein/checkpoint/save/checkpoint_writer.h"
#include "skein/config/config.h"
#include "skein/config/run/identity.h"
#include "skein/ir/program.h"
#include "skein/record/files/events.h"
#include "skein/record/files/metrics.h"
#include "skein/record/files/tensorboard.h"
#include "skein/record/log/progress.h"
#include "skein/record/log/spikes.h"
#include "skein/record/log/thread_advice.h"

namespace skein {

// {"weights": bytes, ..., "snapshot": bytes, "loader": bytes}: the memory that a rank allocated.
OrderedJson allocated_to_json(const ArenaBytes& arena_bytes, int64_t snapshot_bytes,
                              int64_t loader_bytes);

// What watched the gradient norms in metrics.jsonl up to `step`: for checkpoints of older versions,
// which do not hold it.
SpikeDetector spikes_until(const fs::path& metrics_file, int64_t step);
// What came before this process: how `skein train` was launched, by the clock of
// base/machine/machine.h.
struct Launched {
  int64_t generation = 1;     // how often the workers of this launch were started
  double at_seconds = 0;      // 0: with this process
  double waited_seconds = 0;  // of them, for other machines
  bool only_validates = false;
};

class RunLog {
 public:
  // Creates the run folder.
  explicit RunLog(const Config& config, const Launched& launched = {});

  // What was allocated, and the rates that utilization refers to.
  struct Scale {
    int64_t num_parameters = 0;
    double flops_per_token = 0;
    double guess_loss = 0;     // of a model that gives all tokens one probability: ln(vocab_size)
    double ceiling_flops = 0;  // the measured matrix-product rate of all ranks
    int num_ranks = 1;
    int threads = 0;                          // of a rank, where they compute; 0: a GPU does
    int64_t calls_per_step = 0;               // of kernels, on this rank
    std::string arithmetic;                   // Device::arithmetic()
    std::optional<double> peak_flops;         // of all ranks, as advertised
    std::function<double()> measure_ceiling;  // empty: it cannot be measured between steps
    ArenaBytes arena_bytes{};
    int64_t snapshot_bytes = 0;
    int64_t loader_bytes = 0;
  };
  void set_scale(const Scale& scale);
  // The ceiling of so many ranks by what an earlier generation of this launch measured; 0: none
  // did.
  double ceiling_before(int num_ranks) const;
  void skip_checkpoint(const CheckpointInfo& info, const Error& why);
  struct StartNote {
    std::string why;                  // why the run starts from that checkpoint, for people
    std::span<const Change> changes;  // of the configuration since that checkpoint
  };
  // Whether the newest start in the run folder ended with `stop`. A start that has nothing to do
  // after it writes no event, so that no time is waited for it and none is its own.
  bool has_stopped() const;
  // Training begins after `step`, with weights from the path `from` ("": random weights).
  void start(int64_t step, const std::string& from, const StartNote& note);
  // The run goes back to the state after `to_step`, because of what the steps up to `step` did.
  struct RollBack {
    int64_t step = 0;
    int64_t to_step = 0;
    std::string from;    // path of the checkpoint; "": initial weights
    Json batches;        // [first, last]: those that are skipped from here on
    Json skipped;        // all that are skipped
    int64_t count = 0;   // of roll-backs so far, this one included
    std::string reason;  // what the steps did, for people
  };
  void roll_back(const RollBack& roll_back);

  // Fills in the rates and the time of `metrics`, and writes them to every log, with what the
  // gradient norm looks like. The step took `seconds` and ended at `ended_at`; `num_tokens`: its
  // tokens, with and without labels. Returns the seconds spent in measuring the ceiling again,
  // which belong to no step.
  double step(StepMetrics metrics, const SpikeDetector::Verdict& verdict, double seconds,
              Clock::time_point ended_at, int64_t num_tokens);
  struct ValidationNote {
    int64_t step = 0;
    std::string set;  // the name of a data.validation_set; empty: data.validation
    double loss = 0;
    double bits_per_byte = 0;  // 0: not known
    int64_t num_tokens = 0;
    double seconds = 0;
  };
  void validation(const ValidationNote& note);
  // `tasks`: as the configuration names them.
  void evaluation(int64_t step, const std::string& tasks, const std::vector<EvaluatedScore>& scores,
                  double seconds);
  // Whether the run folder has that evaluation.
  bool has_evaluation(int64_t step, const std::string& tasks) const;
  void checkpoint_begin(int64_t step);
  void checkpoint_commit(const SavedCheckpoint& saved);
  void checkpoint_failed(int64_t step, const Error& why);
  // `wire`: the bytes that rank 0 sent in the training steps of this start (compile/wire_use.h).
  void stop(int64_t step, const std::string& why, const OrderedJson& wire = nullptr,
            const std::string& explained = "");
  void nothing_to_do(int64_t step, const std::string& ended_early = "");

 private:
  void tell_other_arithmetic();
  void tell_threads();
  bool chose_threads() const;  // the number of threads is not the user's
  StepWork work_of(int64_t num_tokens) const;
  void tell_spikes(int64_t step, const SpikeDetector::Verdict& verdict);
  void tell_divergence(const StepMetrics& metrics);
  void begin_after(int64_t step);
  double raise_ceiling(double model_flops_per_s);
  void say_repetition(const StepMetrics& metrics);
  void say(const std::string& line);

  Config config_;
  Launched launched_;
  fs::path dir_;
  MetricsLog metrics_;
  EventLog events_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;
  Progress progress_;
  SlowThreads slow_threads_;
  Scale scale_;
  double ceiling_time_ = 0;    // when the ceiling was last measured
  int64_t number_ = 0;         // of this start
  float epoch_ = 0;            // epoch of the previous step; below 0: not known
  std::vector<float> epochs_;  // likewise, of each of several corpora
  int64_t memory_bytes_ = 0;
  bool has_learnt_ = false;         // the loss was below that of a guess, in this start
  int64_t worse_than_a_guess_ = 0;  // steps in a row; below 0: it was said
};

}  // namespace skein
