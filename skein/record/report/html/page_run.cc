// A run's part of the page's data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "skein/record/report/float_json.h"
#include "skein/record/report/html/explained_steps.h"
#include "skein/record/report/html/page.h"
#include "skein/record/report/html/thin_curve.h"

namespace skein {
namespace {

constexpr size_t kMostSpikes = 200;

struct PageMetric {
  const char* key;
  float StepMetrics::*member;
  bool only_if_known;  // a run that never had more than 0 has no such curve
};

constexpr PageMetric kCurves[] = {
    {"loss", &StepMetrics::loss, false},
    {"learning_rate", &StepMetrics::learning_rate, false},
    {"grad_norm", &StepMetrics::grad_norm, false},
    {"tokens_per_s", &StepMetrics::tokens_per_s, true},
    {"step_ms", &StepMetrics::step_ms, true},
    {"matmul_ceiling_share", &StepMetrics::matmul_ceiling_share, true},
    {"peak_utilization", &StepMetrics::peak_utilization, true},
    {"batch_sequences", nullptr, true},
};

// Values in thousandths of an hour would need fewer digits than a double has.
double rounded_hours(double seconds) { return std::round(seconds / 3600 * 1e6) / 1e6; }

OrderedJson columns(std::initializer_list<const char*> names) {
  OrderedJson json = OrderedJson::object();
  for (const char* name : names) json[name] = OrderedJson::array();
  return json;
}

// Tokens and hours of some steps; those between lie on straight lines.
OrderedJson axis_json(const RunReport& report, double began) {
  OrderedJson axis = columns({"step", "tokens", "hours"});
  const std::vector<StepMetrics>& steps = report.steps;
  const size_t stride = std::max<size_t>(steps.size() / (kMostCurvePoints / 2), 1);
  double newest = began;
  for (size_t row = 0; row < steps.size(); ++row) {
    newest = std::max(newest, steps[row].time);  // a clock may be set back
    if (row % stride != 0 && row + 1 != steps.size()) continue;
    axis["step"].push_back(steps[row].step);
    axis["tokens"].push_back(steps[row].tokens);
    axis["hours"].push_back(rounded_hours(newest - began));
  }
  return axis;
}

std::vector<float> values_of(const RunReport& report, const PageMetric& metric) {
  std::vector<float> values;
  values.reserve(report.steps.size());
  for (const StepMetrics& step : report.steps) {
    values.push_back(metric.member != nullptr ? step.*metric.member
                                              : static_cast<float>(step.batch_sequences));
  }
  return values;
}

OrderedJson curve_json(const std::vector<StepMetrics>& steps, const std::vector<float>& values) {
  OrderedJson curve = columns({"step", "value"}), means = columns({"step", "value"});
  const ThinnedCurve thinned = thin_curve(values);
  for (const size_t row : thinned.rows) {
    curve["step"].push_back(steps[row].step);
    curve["value"].push_back(float_json(values[row]));
  }
  for (const ThinnedCurve::BucketMean& mean : thinned.means) {
    means["step"].push_back(steps[mean.row].step);
    means["value"].push_back(float_json(mean.mean));
  }
  if (!thinned.means.empty()) curve["means"] = std::move(means);
  return curve;
}

OrderedJson curves_json(const RunReport& report) {
  OrderedJson curves = OrderedJson::object();
  for (const PageMetric& metric : kCurves) {
    const std::vector<float> values = values_of(report, metric);
    const bool is_known =
        std::any_of(values.begin(), values.end(), [](float value) { return value > 0; });
    if (values.empty() || (metric.only_if_known && !is_known)) continue;
    curves[metric.key] = curve_json(report.steps, values);
  }
  return curves;
}

OrderedJson spikes_json(const RunReport& report) {
  OrderedJson spikes = OrderedJson::array();
  const size_t count = report.spikes.size();
  for (size_t i = count > kMostSpikes ? count - kMostSpikes : 0; i < count; ++i) {
    const RunReport::Spike& spike = report.spikes[i];
    OrderedJson one = OrderedJson::object();
    one["step"] = spike.step;
    one["length"] = spike.length;
    one["grad_norm"] = float_json(spike.highest_norm);
    const auto at = std::lower_bound(
        report.steps.begin(), report.steps.end(), spike.step,
        [](const StepMetrics& metrics, int64_t step) { return metrics.step < step; });
    one["loss"] = at == report.steps.end() ? OrderedJson(nullptr) : float_json(at->loss);
    spikes.push_back(std::move(one));
  }
  return spikes;
}

OrderedJson events_json(const RunEvents& events, double began) {
  OrderedJson list = OrderedJson::array();
  for (const RunEvents::Event& event : events.list) {
    OrderedJson one = OrderedJson::object();
    one["hours"] = event.time > 0 ? OrderedJson(rounded_hours(event.time - began)) : nullptr;
    one["step"] = event.step ? OrderedJson(*event.step) : OrderedJson(nullptr);
    one["event"] = event.name;
    one["text"] = event.text;
    list.push_back(std::move(one));
  }
  return list;
}

OrderedJson memory_json(const RunEvents& events) {
  OrderedJson memory = OrderedJson::object(), arenas = OrderedJson::object();
  for (const auto& [arena, bytes] : events.allocated_bytes) arenas[arena] = bytes;
  memory["allocated"] = std::move(arenas);
  memory["peak_resident_bytes"] =
      events.peak_resident_bytes ? OrderedJson(*events.peak_resident_bytes) : OrderedJson(nullptr);
  return memory;
}

template <typename Value>
OrderedJson value_or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson evaluations_json(const RunEvaluations& evaluations) {
  OrderedJson list = OrderedJson::array();
  for (const RunEvaluation& evaluation : evaluations.list) {
    OrderedJson scores = OrderedJson::array();
    for (const EvaluatedScore& score : evaluation.scores) {
      OrderedJson one = OrderedJson::object();
      one["task"] = score.task;
      one["metric"] = score.metric;
      one["value"] = std::isfinite(score.value) ? OrderedJson(score.value) : OrderedJson(nullptr);
      one["error"] = value_or_null(score.error);
      one["documents"] = value_or_null(score.num_documents);
      one["fewshot"] = value_or_null(score.num_fewshot);
      one["higher_is_better"] = value_or_null(score.higher_is_better);
      scores.push_back(std::move(one));
    }
    OrderedJson one = OrderedJson::object();
    one["file"] = evaluation.file;
    one["step"] = value_or_null(evaluation.step);
    one["scores"] = std::move(scores);
    list.push_back(std::move(one));
  }
  return list;
}

// The launch of the run, as far as it is known.
double beginning(const RunReport& report) {
  if (report.steps.empty()) return 0;
  const StepMetrics& first = report.steps.front();
  return first.time - static_cast<double>(first.step_ms) / 1e3;
}

}  // namespace

OrderedJson page_run(const ComparedRun& run, const RunReport& report) {
  const double began = beginning(report);
  std::vector<std::string> notes = run.notes;
  OrderedJson json = OrderedJson::object();
  json["name"] = run.name;
  json["folder"] = run.folder;
  json["state"] = run.state;
  json["figures"] = OrderedJson::array();
  for (const RunFigure& figure : run.figures) {
    json["figures"].push_back(OrderedJson::array({figure.name, figure.text}));
  }
  json["report"] = run.report;
  json["began"] = began;
  json["num_steps"] = report.steps.size();
  json["axis"] = axis_json(report, began);
  json["curves"] = curves_json(report);
  json["spikes"] = spikes_json(report);
  if (report.spikes.size() > kMostSpikes) {
    notes.push_back(fmt::format("{}: {} spikes: the last {} are shown", run.folder,
                                report.spikes.size(), kMostSpikes));
  }
  json["explained"] = explained_steps(run.folder, notes);
  json["events"] = events_json(run.events, began);
  if (run.events.num_left_out > 0) {
    notes.push_back(
        fmt::format("{}: the first {} events are not shown", run.folder, run.events.num_left_out));
  }
  json["memory"] = memory_json(run.events);
  json["evaluations"] = evaluations_json(run.evaluations);
  json["settings"] = OrderedJson::array();
  for (const auto& [key, value] : run.settings.values) {
    json["settings"].push_back(OrderedJson::array({key, value}));
  }
  json["notes"] = std::move(notes);
  return json;
}

}  // namespace skein
