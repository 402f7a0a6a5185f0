// metrics.jsonl: one object per step. Format: docs/metrics_format.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/json.h"
#include "skein/record/jsonl.h"

namespace skein {

// The measurements of one step. A float that is not finite is written as null.
struct StepMetrics {
  int64_t step = 0;  // 1 = after the first update
  float loss = 0;    // mean natural-log cross-entropy per real token of the global batch
  float learning_rate = 0;
  float grad_norm = 0;  // before clipping
  float param_norm = 0;
  int64_t tokens = 0;                                 // real tokens since the run began
  float epoch = 0;                                    // passes over the corpus since the run began
  std::vector<std::pair<std::string, float>> epochs;  // over each of several corpora
  float tokens_per_s = 0;
  float step_ms = 0;  // wall time of the whole step, including the five below
  float data_wait_ms = 0;
  float checkpoint_stall_ms = 0;
  float replication_stall_ms = 0;
  float comm_exposed_ms = 0;
  float state_check_ms = 0;
  float matmul_ceiling_share = 0;  // model FLOP/s over the measured matrix-product rate, 0..1
  float peak_utilization = 0;      // model FLOP/s over the advertised rate; 0: not known
  double time = 0;                 // Unix seconds at the end of the step
  int64_t start = 0;               // the number of the start that did it; 0: not known
  double clock = 0;                // seconds since its machine booted, at the end of the step
  bool operator==(const StepMetrics&) const = default;
};

// The JSON line of a step, without a line break; floats read back to the same bits.
std::string metrics_line(const StepMetrics& metrics);

// Parses an object of metrics.jsonl. null reads as NaN, a missing measurement as 0; nullopt where
// `step` or `loss` is missing or a value has the wrong type.
std::optional<StepMetrics> parse_metrics(const Json& json);

// Appends steps to `<run_dir>/metrics.jsonl`.
class MetricsLog {
 public:
  explicit MetricsLog(const fs::path& run_dir) : writer_(run_dir / "metrics.jsonl") {}
  void append(const StepMetrics& metrics) { writer_.append(metrics_line(metrics)); }
  void finish() { writer_.finish(); }

 private:
  JsonlWriter writer_;
};

}  // namespace skein
