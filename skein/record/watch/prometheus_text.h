// Prometheus' text exposition format 0.0.4: families of metrics, each with its help and type.
//
// Source   https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "skein/record/files/metrics_table.h"

namespace skein {

class PrometheusText {
 public:
  // "# HELP skein_loss ...\n# TYPE skein_loss gauge\n"
  void family(const char* name, const char* type, const char* help) {
    text_ += fmt::format("# HELP skein_{0} {2}\n# TYPE skein_{0} {1}\n", name, type, help);
    name_ = name;
  }
  // Of the family before: "skein_loss 5.43\n". `labels`: part="saving".
  template <typename Number>
  void sample(Number value, const std::string& labels = "") {
    text_ += labels.empty() ? fmt::format("skein_{} ", name_)
                            : fmt::format("skein_{}{{{}}} ", name_, labels);
    const auto number = static_cast<double>(value);
    if (std::isfinite(number)) {
      text_ += fmt::format("{}\n", value);
    } else {
      text_ += std::isnan(number) ? "NaN\n" : number > 0 ? "+Inf\n" : "-Inf\n";
    }
  }
  template <typename Number>
  void gauge(const char* name, Number value, const char* help) {
    family(name, "gauge", help);
    sample(value);
  }
  template <typename Number>
  void counter(const char* name, Number value, const char* help) {
    family(name, "counter", help);
    sample(value);
  }
  const std::string& text() const { return text_; }

  // `value` as that of a label: name="value".
  static std::string label(const char* name, std::string_view value);

 private:
  std::string text_, name_;
};

// The newest values of a run.
void add_step_metrics(PrometheusText& text, const MetricsSample& sample);

}  // namespace skein
