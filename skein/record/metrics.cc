#include "skein/record/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace skein {
namespace {

struct FloatKey {
  const char* key;
  float StepMetrics::*value;
};

// The order of keys in a line: these floats come before `tokens`, the next ones after it.
constexpr FloatKey kBeforeTokens[] = {{"loss", &StepMetrics::loss},
                                      {"learning_rate", &StepMetrics::learning_rate},
                                      {"grad_norm", &StepMetrics::grad_norm},
                                      {"param_norm", &StepMetrics::param_norm}};
constexpr FloatKey kAfterTokens[] = {
    {"epoch", &StepMetrics::epoch},
    {"tokens_per_s", &StepMetrics::tokens_per_s},
    {"step_ms", &StepMetrics::step_ms},
    {"data_wait_ms", &StepMetrics::data_wait_ms},
    {"checkpoint_stall_ms", &StepMetrics::checkpoint_stall_ms},
    {"replication_stall_ms", &StepMetrics::replication_stall_ms},
    {"comm_exposed_ms", &StepMetrics::comm_exposed_ms},
    {"state_check_ms", &StepMetrics::state_check_ms},
    {"model_flops_utilization", &StepMetrics::matmul_ceiling_share},  // its former name
    {"matmul_ceiling_share", &StepMetrics::matmul_ceiling_share}};
constexpr FloatKey kPeak = {"peak_utilization", &StepMetrics::peak_utilization};

void append_float(std::string& line, const FloatKey& key, const StepMetrics& metrics) {
  line += fmt::format(", \"{}\": {}", key.key, json_float(metrics.*key.value));
}

// {"web": 0.25, "code": 1.5}; names are words (config_check.cc).
std::string epochs_text(const StepMetrics& metrics) {
  std::string text;
  for (const auto& [name, epochs] : metrics.epochs) {
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", name, json_float(epochs));
  }
  return "{" + text + "}";
}

// Returns false where the value is present but not a number.
bool read_float(const Json& json, const FloatKey& key, StepMetrics& metrics) {
  const auto found = json.find(key.key);
  if (found == json.end()) return true;
  if (found->is_null()) {
    metrics.*key.value = std::numeric_limits<float>::quiet_NaN();
    return true;
  }
  if (found->is_number()) metrics.*key.value = found->get<float>();
  return found->is_number();
}

}  // namespace

std::string metrics_line(const StepMetrics& metrics) {
  std::string line = fmt::format("{{\"step\": {}", metrics.step);
  for (const FloatKey& key : kBeforeTokens) append_float(line, key, metrics);
  line += fmt::format(", \"tokens\": {}", metrics.tokens);
  for (const FloatKey& key : kAfterTokens) append_float(line, key, metrics);
  if (metrics.peak_utilization > 0) append_float(line, kPeak, metrics);
  if (!metrics.epochs.empty()) line += ", \"epochs\": " + epochs_text(metrics);
  line += fmt::format(", \"time\": {}", metrics.time);
  if (metrics.start > 0) {
    line += fmt::format(", \"start\": {}, \"clock\": {}", metrics.start, metrics.clock);
  }
  return line + "}";
}

std::optional<StepMetrics> parse_metrics(const Json& json) {
  if (!json.is_object() || !json.contains("loss")) return std::nullopt;
  StepMetrics metrics;
  const auto step = json.find("step");
  if (step == json.end() || !step->is_number_integer()) return std::nullopt;
  metrics.step = step->get<int64_t>();
  const auto tokens = json.find("tokens");
  if (tokens != json.end()) {
    if (!tokens->is_number_integer()) return std::nullopt;
    metrics.tokens = tokens->get<int64_t>();
  }
  for (const FloatKey& key : kBeforeTokens) {
    if (!read_float(json, key, metrics)) return std::nullopt;
  }
  for (const FloatKey& key : kAfterTokens) {
    if (!read_float(json, key, metrics)) return std::nullopt;
  }
  if (const auto epochs = json.find("epochs"); epochs != json.end() && epochs->is_object()) {
    for (const auto& [name, value] : epochs->items()) {
      if (value.is_number()) metrics.epochs.emplace_back(name, value.get<float>());
    }
  }
  const auto time = json.find("time");
  if (time != json.end() && time->is_number()) metrics.time = time->get<double>();
  const auto start = json.find("start"), clock = json.find("clock");
  if (start != json.end() && start->is_number_integer() && clock != json.end() &&
      clock->is_number()) {
    metrics.start = start->get<int64_t>();
    metrics.clock = clock->get<double>();
  }
  return metrics;
}

}  // namespace skein
