#include "skein/record/files/metrics_table.h"

#include <fmt/format.h>

#include "skein/base/text/units.h"

namespace skein {
namespace {

// Two decimals, or two significant digits for a small share of a large corpus.
std::string epoch_text(float epoch) {
  return epoch >= 0.1f || epoch == 0 ? fmt::format("epoch {:.2f}", epoch)
                                     : fmt::format("epoch {:.2g}", epoch);
}

const Metric kMetrics[] = {
#define METRIC(type, name, ...) {.key = #name, .member = &StepMetrics::name, __VA_ARGS__},
#define GAUGE(name, shown, ...) {.key = shown, .member = &MetricsSample::name, __VA_ARGS__},
#include "skein/record/files/metrics.def"
#undef METRIC
#undef GAUGE
};

std::string quoted(const std::string& name) { return "`" + name + "`"; }

std::string prometheus_cell(const Metric& metric) {
  const Metric::Prometheus& shown = metric.prometheus;
  if (shown.name == nullptr) return "";
  const std::string label = *shown.label != '\0' ? fmt::format("{{{}}}", shown.label) : "";
  return quoted(shown.name + label) +
         (std::string_view(shown.type) == "counter" ? ", a counter" : "");
}

std::string tensorboard_cell(const Metric& metric) {
  if (metric.tensorboard == 0) return "";
  const bool is_list = std::holds_alternative<NamedFloats StepMetrics::*>(metric.member);
  return quoted(is_list ? std::string(metric.key) + "/NAME" : metric.key);
}

std::string rows(bool in_jsonl) {
  std::string text;
  for (const Metric& metric : metrics_table()) {
    if (metric.is_in_jsonl() != in_jsonl) continue;
    text += fmt::format("| {} | {} | {} | {} | {} |\n", quoted(metric.key), metric.unit,
                        tensorboard_cell(metric), prometheus_cell(metric), metric.page);
    if (metric.former.key == nullptr) continue;
    const std::string former = quoted(metric.former.key);
    text += fmt::format("| {} | {} | {} | {} | {} under its former name; not MFU |\n", former,
                        metric.unit, metric.tensorboard > 0 ? former : "",
                        metric.prometheus.name != nullptr ? former : "", quoted(metric.key));
  }
  return text;
}

}  // namespace

std::span<const Metric> metrics_table() { return kMetrics; }

std::string metrics_reference() {
  return "| key | unit | TensorBoard | Prometheus | |\n|---|---|---|---|---|\n" + rows(true) +
         "\nNot in `metrics.jsonl`, but in the other two:\n\n"
         "| | unit | TensorBoard | Prometheus | |\n|---|---|---|---|---|\n" +
         rows(false);
}

}  // namespace skein
