// metrics.jsonl: one object per step. Format: docs/metrics_format.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/record/files/jsonl.h"

namespace skein {

using NamedFloats = std::vector<std::pair<std::string, float>>;

// The measurements of one step; metrics.def says what each is. A float that is not finite is
// written as null.
struct StepMetrics {
#define METRIC(type, key, ...) type key{};
#define GAUGE(member, ...)
#include "skein/record/files/metrics.def"
#undef METRIC
#undef GAUGE
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
