// The rows of metrics.def: what a metric is called and where it is shown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

#include "skein/record/files/metrics.h"

namespace skein {

// A step's metrics and what is shown beside them.
struct MetricsSample {
  StepMetrics metrics;
#define METRIC(type, key, ...)
#define GAUGE(member, ...) int64_t member = 0;
#include "skein/record/files/metrics.def"
#undef METRIC
#undef GAUGE
};

using MetricMember =
    std::variant<int64_t StepMetrics::*, float StepMetrics::*, double StepMetrics::*,
                 NamedFloats StepMetrics::*, int64_t MetricsSample::*>;

// In which lines a key stands.
enum class Written {
  kAlways,
  kIfKnown,    // where it is above 0, or lists something
  kWithStart,  // where `start` is known
};

struct Metric {
  struct Former {  // name of the same value, written before it
    const char* key = nullptr;
    const char* help = "";
  };
  struct Prometheus {
    const char* name = nullptr;  // without "skein_"; null: not there
    float per_unit = 1;          // what the value is divided by: 1000 for ms, in seconds
    const char* type = "gauge";
    const char* label = "";  // of a list: the label that holds a name
  };
  struct Progress {
    int place = 0;       // in the line, from 1; 0: not there
    int importance = 0;  // 1 is dropped first
    std::string (*text)(float) = nullptr;
  };
  const char* key;
  MetricMember member;
  const char* unit = "";
  const char* page = "";  // for docs/metrics_format.md
  const char* help = "";  // a sentence, for Prometheus
  bool required = false;  // an object without it is no step
  Written written = Written::kAlways;
  Former former = {};
  int tensorboard = 0;  // place among the scalars of a step, from 1; 0: not there
  Prometheus prometheus = {};
  Progress progress = {};

  bool is_in_jsonl() const { return !std::holds_alternative<int64_t MetricsSample::*>(member); }
};

std::span<const Metric> metrics_table();

// Whether `value` of a metric is shown: no output shows what is Written::kIfKnown and 0 or empty.
template <typename Value>
bool is_shown(const Metric& metric, const Value& value) {
  if (metric.written != Written::kIfKnown) return true;
  if constexpr (std::is_same_v<Value, NamedFloats>)
    return !value.empty();
  else
    return value > Value{0};
}

// The tables of docs/metrics_format.md.
std::string metrics_reference();

}  // namespace skein
