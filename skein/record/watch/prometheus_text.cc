#include "skein/record/watch/prometheus_text.h"

namespace skein {

std::string PrometheusText::label(const char* name, std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? "\\n" : std::string(1, c);
  }
  return fmt::format("{}=\"{}\"", name, escaped);
}

namespace {

// Of one metric: a family, and its samples. Nothing where its value is not known.
class StepFamily {
 public:
  StepFamily(PrometheusText& text, const MetricsSample& sample, const Metric& metric)
      : text_(text), sample_(sample), metric_(metric) {}

  void operator()(int64_t StepMetrics::*member) { number(sample_.metrics.*member); }
  void operator()(int64_t MetricsSample::*member) { number(sample_.*member); }
  void operator()(double StepMetrics::*member) { number(sample_.metrics.*member); }
  void operator()(float StepMetrics::*member) {
    number(sample_.metrics.*member / metric_.prometheus.per_unit);
  }
  void operator()(NamedFloats StepMetrics::*member) {
    const NamedFloats& values = sample_.metrics.*member;
    if (values.empty()) return;
    text_.family(metric_.prometheus.name, metric_.prometheus.type, metric_.help);
    for (const auto& [name, value] : values) {
      text_.sample(value, PrometheusText::label(metric_.prometheus.label, name));
    }
  }

 private:
  template <typename Number>
  void number(Number value) {
    if (!is_shown(metric_, value)) return;
    if (metric_.former.key != nullptr) text_.gauge(metric_.former.key, value, metric_.former.help);
    text_.family(metric_.prometheus.name, metric_.prometheus.type, metric_.help);
    text_.sample(value);
  }

  PrometheusText& text_;
  const MetricsSample& sample_;
  const Metric& metric_;
};

}  // namespace

void add_step_metrics(PrometheusText& text, const MetricsSample& sample) {
  for (const Metric& metric : metrics_table()) {
    if (metric.prometheus.name == nullptr) continue;
    std::visit(StepFamily(text, sample, metric), metric.member);
  }
}

}  // namespace skein
