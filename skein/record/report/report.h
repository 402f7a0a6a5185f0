// A summary of a run, read from its folder: config.toml, metrics.jsonl, events.jsonl.
//
// Rules    Where a step was repeated, its last object counts. Steps after the checkpoint that a
//          later start resumed from do not count, whether they were repeated or not. The time of
//          steps that do not count is redone work.
//          A start without a stop or failure event whose process does not run any more was killed,
//          which counts as a failure. Lines that are incomplete or not objects are counted and
//          skipped. A missing file leaves its part of the report empty.
//          wall    = from the launch of the first start (or the begin of the first step) to the
//                  newest step, start, restart or end
//          useful  = sum over steps that count of step_ms - data_wait_ms - checkpoint_stall_ms -
//                    replication_stall_ms
//          goodput = useful / wall; time_ledger.h divides the wall into its parts
//          A machine that is lost takes its peers along: their `failure` is a consequence, and
//          counts as the loss of that machine where the next generation begins without it.
//          Gradient spikes: those of norms that stand out of their noise (spikes.h);
//          spikes_by_length has all that the events tell of.
//          other   = wall - useful - data wait - checkpoint stall - redone: the parts of the ledger
//                  that are none of these
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/record/files/evaluated_score.h"
#include "skein/record/files/metrics.h"
#include "skein/record/report/time_ledger.h"

namespace skein {

struct RunReport {
  struct Validation {
    int64_t step = 0;
    float loss = 0;
    std::string set;  // of data.validation_set; empty: data.validation
  };
  struct Failure {
    double time = 0;
    std::string reason;
    std::optional<int64_t> step;  // the last completed step
    std::optional<int64_t> rank;
    bool fatal = true;    // the process ended
    std::string machine;  // that was lost, and is why; no rank failed then
  };
  // Machines that a generation began without, or took in.
  struct Machine {
    double time = 0;
    bool is_lost = false;
    std::string name;
    int64_t generation = 0;
    std::string reason;
  };
  struct Spike {  // of the gradient norm, beyond its noise
    int64_t step = 0, length = 0;
    float highest_norm = 0;  // NaN where it was not finite
  };
  struct Evaluated {
    int64_t step = 0;
    EvaluatedScore score;
  };
  struct Skipped {  // a checkpoint that a start passed over
    int64_t step = 0;
    std::string reason;
  };
  struct Changed {  // a setting, by a start
    int64_t step = 0;
    std::string key, before, after;
  };
  // How the newest start ended.
  enum class End { kNone, kStopped, kFailed, kVanished, kRunning, kUnknown };

  std::string run_dir;
  std::optional<int64_t> planned_steps;  // nullopt where config.toml cannot be read
  std::vector<StepMetrics> steps;        // those that count, in order; shares of the highest
                                         // ceiling (ceiling.h)
  std::vector<Validation> validations;   // likewise
  std::vector<Failure> failures;
  std::vector<Machine> machines;
  std::vector<Changed> changes;
  std::vector<Skipped> skipped_checkpoints;
  int64_t num_restarts = 0;
  int64_t num_roll_backs = 0;
  int64_t num_checkpoints = 0;
  std::optional<int64_t> last_checkpoint_step;
  std::map<int64_t, int64_t> spikes_by_length;
  std::map<int64_t, int64_t> outstanding_spikes;  // likewise, of norms that stand out of the noise
  int64_t num_alarms = 0;
  std::vector<Spike> spikes;  // these one by one, in order
  // Evaluations in training, and keys "eval.…" of metrics.jsonl; those that count, in order of
  // steps.
  std::vector<Evaluated> evaluated;
  double one_step_spikes() const;  // the share of spikes that lasted one step
  std::string last_stop_reason;
  End end = End::kNone;
  int64_t num_bad_lines = 0;
  double ceiling_flops = 0;  // the highest of the newest start's machine; 0: not known

  TimeLedger time;
  double checkpoint_stall_seconds = 0;  // in steps that count
  double wall_seconds() const { return static_cast<double>(time.total_micros()) / 1e6; }
  double other_seconds() const;
  double goodput() const { return time.goodput(); }

  const StepMetrics* best() const;  // the step with the lowest loss; null where there are no steps
  const StepMetrics* peak_learning_rate() const;  // likewise
  // Of each set the lowest, by name.
  std::map<std::string, Validation> best_validations() const;
  float median_tokens_per_s() const;
  float median_utilization() const;
};

// Throws Error{kNotFound} where `run_dir` is no folder or holds neither metrics nor events.
RunReport read_report(const fs::path& run_dir);

OrderedJson report_json(const RunReport& report);
std::string report_text(const RunReport& report);  // with a plot of the loss

}  // namespace skein
