#include "skein/record/files/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "skein/record/files/metrics_table.h"

namespace skein {
namespace {

// {"web": 0.25, "code": 1.5}; names are words (config/check.cc).
std::string object_text(const NamedFloats& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", name, json_float(value));
  }
  return "{" + text + "}";
}

std::string value_text(const StepMetrics& metrics, const MetricMember& member) {
  struct ValueText {
    const StepMetrics& metrics;
    std::string operator()(int64_t StepMetrics::*at) const { return std::to_string(metrics.*at); }
    std::string operator()(double StepMetrics::*at) const { return fmt::format("{}", metrics.*at); }
    std::string operator()(float StepMetrics::*at) const { return json_float(metrics.*at); }
    std::string operator()(NamedFloats StepMetrics::*at) const { return object_text(metrics.*at); }
    std::string operator()(int64_t MetricsSample::*) const { return ""; }
  };
  return std::visit(ValueText{metrics}, member);
}

bool is_written(const StepMetrics& metrics, const Metric& metric) {
  if (!metric.is_in_jsonl()) return false;
  if (metric.written == Written::kWithStart) return metrics.start > 0;
  return std::visit(
      [&](auto member) {
        if constexpr (std::is_same_v<decltype(member), int64_t MetricsSample::*>) {
          return false;
        } else {
          return is_shown(metric, metrics.*member);
        }
      },
      metric.member);
}

// Reads a value into its member. Returns false where it has the wrong type.
struct Read {
  const Json& json;
  StepMetrics& metrics;

  bool operator()(int64_t StepMetrics::*at) const {
    if (json.is_number_integer()) metrics.*at = json.get<int64_t>();
    return json.is_number_integer();
  }
  bool operator()(float StepMetrics::*at) const {
    if (json.is_number()) metrics.*at = json.get<float>();
    if (json.is_null()) metrics.*at = std::numeric_limits<float>::quiet_NaN();
    return json.is_number() || json.is_null();
  }
  bool operator()(double StepMetrics::*at) const {
    if (json.is_number()) metrics.*at = json.get<double>();
    return true;
  }
  bool operator()(NamedFloats StepMetrics::*at) const {
    if (!json.is_object()) return true;
    for (const auto& [name, value] : json.items()) {
      if (value.is_number()) (metrics.*at).emplace_back(name, value.get<float>());
    }
    return true;
  }
  bool operator()(int64_t MetricsSample::*) const { return true; }
};

bool read(const Json& json, const Metric& metric, StepMetrics& metrics) {
  for (const char* key : {metric.former.key, metric.key}) {
    const auto found = key == nullptr ? json.end() : json.find(key);
    if (found != json.end() && !std::visit(Read{*found, metrics}, metric.member)) return false;
  }
  return true;
}

// Of a line that does not say both, neither is known.
bool says_its_start(const Json& json) {
  const auto start = json.find("start"), clock = json.find("clock");
  return start != json.end() && start->is_number_integer() && clock != json.end() &&
         clock->is_number();
}

}  // namespace

std::string metrics_line(const StepMetrics& metrics) {
  std::string line;
  for (const Metric& metric : metrics_table()) {
    if (!is_written(metrics, metric)) continue;
    const std::string value = value_text(metrics, metric.member);
    for (const char* key : {metric.former.key, metric.key}) {
      if (key == nullptr) continue;
      line += fmt::format("{}\"{}\": {}", line.empty() ? "{" : ", ", key, value);
    }
  }
  return line + "}";
}

std::optional<StepMetrics> parse_metrics(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const bool has_start = says_its_start(json);
  StepMetrics metrics;
  for (const Metric& metric : metrics_table()) {
    if (!metric.is_in_jsonl() || (metric.written == Written::kWithStart && !has_start)) continue;
    if (metric.required && !json.contains(metric.key)) return std::nullopt;
    if (!read(json, metric, metrics)) return std::nullopt;
  }
  return metrics;
}

}  // namespace skein
