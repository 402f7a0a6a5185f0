#include "skein/cli/evaluate/checkpoint_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "skein/base/text/units.h"
#include "skein/record/report/text_plot.h"

namespace skein {
namespace {

struct Curve {
  std::string task, metric;  // "acc,none"
};

// The metric that stands for a task.
std::optional<std::string> metric_of(const Json& scores) {
  std::optional<std::string> first;
  for (const char* wanted : {"acc_norm,none", "acc,none"}) {
    if (scores.contains(wanted) && scores.at(wanted).is_number()) return wanted;
  }
  for (const auto& [key, value] : scores.items()) {
    const bool is_metric = key.find(',') != key.npos && key.find("_stderr,") == key.npos;
    if (!first && is_metric && value.is_number()) first = key;
  }
  return first;
}

// Of a group, its mean and not its tasks.
std::vector<Curve> curves_of(const Json& results) {
  std::vector<std::string> inside;
  const Json& scores = results.at("results");
  for (const auto& [group, children] : results.at("group_subtasks").items()) {
    if (!scores.contains(group) || !metric_of(scores.at(group))) continue;
    for (const Json& child : children) inside.push_back(child.get<std::string>());
  }
  std::vector<Curve> curves;
  for (const auto& [task, of_task] : scores.items()) {
    if (std::find(inside.begin(), inside.end(), task) != inside.end()) continue;
    if (const auto metric = metric_of(of_task)) curves.push_back({task, *metric});
  }
  return curves;
}

std::string title(const Curve& curve) {
  std::string metric = curve.metric;
  if (metric.ends_with(",none")) metric.resize(metric.size() - std::string_view(",none").size());
  return curve.task + " " + metric;
}

std::optional<double> value_of(const Json& results, const Curve& curve, const std::string& key) {
  const Json& scores = results.at("results");
  if (!scores.contains(curve.task) || !scores.at(curve.task).contains(key)) return std::nullopt;
  const Json& value = scores.at(curve.task).at(key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string error_key(const std::string& metric) {
  const size_t comma = metric.find(',');
  return metric.substr(0, comma) + "_stderr" + metric.substr(comma);
}

int64_t of_run(const Json& results, const char* key) {
  return results.at("skein").at("run").at(key).get<int64_t>();
}

}  // namespace

std::string checkpoint_curve(const std::vector<Json>& results) {
  if (results.empty()) return "";
  std::string text;
  for (const Curve& curve : curves_of(results.back())) {
    text += fmt::format("{}{}\n{:>10} {:>10}\n", text.empty() ? "" : "\n", title(curve), "step",
                        "tokens");
    std::vector<PlotPoint> points;
    for (const Json& one : results) {
      const auto value = value_of(one, curve, curve.metric);
      if (!value) continue;
      const auto tokens = static_cast<double>(of_run(one, "tokens"));
      const auto error = value_of(one, curve, error_key(curve.metric));
      text += fmt::format("{:>10} {:>10}  {:.4f}{}\n", of_run(one, "step"), format_count(tokens),
                          *value, error ? fmt::format(" ± {:.4f}", *error) : "");
      points.push_back({tokens, *value});
    }
    text += text_plot(points, 60, 8);
  }
  return text;
}

}  // namespace skein
