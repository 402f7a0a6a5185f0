#include "skein/record/report/compare/compared_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "skein/base/error.h"
#include "skein/base/text/nearest.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

class Figures {
 public:
  explicit Figures(std::vector<RunFigure>& list) : list_(list) {}
  void add(const std::string& name, double value, std::string text, bool higher_is_better) {
    if (!std::isfinite(value)) return;
    list_.push_back({name, value, std::move(text), higher_is_better});
  }
  void loss(const std::string& name, float value) {
    add(name, value, fmt::format("{:.4f}", value), false);
  }

 private:
  std::vector<RunFigure>& list_;
};

void add_losses(Figures& figures, const RunReport& report) {
  if (!report.steps.empty()) figures.loss("loss", report.steps.back().loss);
  if (const StepMetrics* best = report.best()) figures.loss("loss.best", best->loss);
  std::map<std::string, float> newest;
  for (const RunReport::Validation& validation : report.validations) {
    newest[validation.set] = validation.loss;
  }
  const auto best = report.best_validations();
  for (const auto& [set, loss] : newest) {
    const std::string name = set.empty() ? "validation." : "validation." + set + ".";
    figures.loss(name + "loss", loss);
    const auto lowest = best.find(set);
    if (lowest != best.end()) figures.loss(name + "best", lowest->second.loss);
  }
}

float median_peak_utilization(const RunReport& report) {
  std::vector<float> values;
  for (const StepMetrics& step : report.steps) {
    if (step.peak_utilization > 0) values.push_back(step.peak_utilization);
  }
  if (values.empty()) return std::nanf("");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_speed(Figures& figures, const RunReport& report) {
  const auto share = [&](const char* name, double value) {
    figures.add(name, value, fmt::format("{:.1f}%", 100 * value), true);
  };
  if (!report.steps.empty()) {
    const auto tokens = static_cast<double>(report.steps.back().tokens);
    const float rate = report.median_tokens_per_s();
    figures.add("steps", static_cast<double>(report.steps.back().step),
                std::to_string(report.steps.back().step), true);
    figures.add("tokens", tokens, format_count(tokens), true);
    figures.add("tokens_per_s", rate, format_count(rate), true);
    share("matmul_ceiling_share", report.median_utilization());
    share("peak_utilization", median_peak_utilization(report));
  }
  if (report.wall_seconds() > 0) {
    figures.add("wall_seconds", report.wall_seconds(), format_duration(report.wall_seconds()),
                false);
    share("goodput", report.goodput());
  }
  const auto count = [&](const char* name, size_t number) {
    figures.add(name, static_cast<double>(number), std::to_string(number), false);
  };
  count("restarts", static_cast<size_t>(report.num_restarts));
  count("failures", report.failures.size());
  count("grad_spikes", report.spikes.size());
}

std::string state_of(const RunReport& report) {
  switch (report.end) {
    case RunReport::End::kStopped:
      return report.last_stop_reason == "done" ? "done" : "stopped: " + report.last_stop_reason;
    case RunReport::End::kFailed:
      return "failed";
    case RunReport::End::kVanished:
      return "killed";
    case RunReport::End::kRunning:
      return "running";
    case RunReport::End::kUnknown:
      return "unknown: on another machine";
    case RunReport::End::kNone:
      return report.steps.empty() ? "not begun" : "unknown: no events";
  }
  return "unknown";
}

bool has_begun(const fs::path& folder) {
  return fs::exists(folder / "metrics.jsonl") || fs::exists(folder / "events.jsonl");
}

bool is_run(const fs::path& folder) {
  return fs::is_directory(folder) && (has_begun(folder) || fs::exists(folder / "config.toml"));
}

RunReport report_of(const std::string& folder) {
  if (has_begun(folder)) return read_report(folder);
  RunReport report;  // a run that is only set up
  report.run_dir = folder;
  return report;
}

ComparedRun compared_run(const RunReport& report, const std::string& name) {
  ComparedRun run;
  run.folder = report.run_dir;
  run.name = name;
  run.state = state_of(report);
  run.report = report_json(report);
  Figures figures(run.figures);
  add_losses(figures, report);
  add_speed(figures, report);
  run.settings = read_settings(report.run_dir);
  run.evaluations = read_evaluations(report);
  run.events = read_run_events(report.run_dir);
  for (const EvaluatedScore& score : newest_scores(run.evaluations)) {
    const bool is_loss = score.metric.find("perplexity") != std::string::npos ||
                         score.metric.find("bits_per_byte") != std::string::npos;
    figures.add(score.name(), score.value, fmt::format("{:.4f}", score.value),
                score.higher_is_better.value_or(!is_loss));
  }
  if (!run.settings.note.empty()) run.notes.push_back(run.settings.note);
  run.notes.insert(run.notes.end(), run.evaluations.notes.begin(), run.evaluations.notes.end());
  if (report.num_bad_lines > 0) {
    run.notes.push_back(
        fmt::format("{}: {} lines of metrics.jsonl and events.jsonl are no "
                    "records and are left out",
                    run.folder, report.num_bad_lines));
  }
  if (report.steps.empty()) run.notes.push_back(run.folder + ": no step yet");
  return run;
}

}  // namespace

const RunFigure* ComparedRun::find(const std::string& figure) const {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const RunFigure& one) { return one.name == figure; });
  return found == figures.end() ? nullptr : &*found;
}

std::vector<std::string> distinct_names(const std::vector<std::string>& folders) {
  std::vector<std::vector<std::string>> parts;
  for (const std::string& folder : folders) {
    parts.emplace_back();
    for (const fs::path& part : fs::absolute(folder).lexically_normal()) {
      if (!part.empty()) parts.back().push_back(part.string());
    }
  }
  const auto end_of = [&](size_t i, size_t count) {
    const size_t first = parts[i].size() - std::min(count, parts[i].size());
    return fmt::format("{}", fmt::join(parts[i].begin() + static_cast<std::ptrdiff_t>(first),
                                       parts[i].end(), "/"));
  };
  std::vector<std::string> names;
  for (size_t i = 0; i < folders.size(); ++i) {
    size_t count = 1;
    const auto is_taken = [&](size_t other) {
      return parts[other] != parts[i] && end_of(other, count) == end_of(i, count);
    };
    std::vector<size_t> others(folders.size());
    std::iota(others.begin(), others.end(), size_t{0});
    while (count < parts[i].size() && std::any_of(others.begin(), others.end(), is_taken)) ++count;
    names.push_back(end_of(i, count));
  }
  return names;
}

ComparedRuns read_compared_runs(const std::vector<std::string>& folders,
                                const CompareVisitor& visit) {
  ComparedRuns runs;
  std::vector<std::string> good;
  std::set<fs::path> seen;
  for (const std::string& folder : folders) {
    if (!fs::exists(folder)) {
      fail(ErrorCode::kNotFound, "{}: is not there: expected the folder of a run", folder);
    }
    if (!is_run(folder)) {
      runs.notes.push_back(folder + ": no run folder; left out");
    } else if (!seen.insert(fs::canonical(folder)).second) {
      runs.notes.push_back(folder + ": named twice; shown once");
    } else {
      good.push_back(folder);
    }
  }
  if (good.empty()) {
    fail(ErrorCode::kNotFound,
         "{}: expected a run folder, with config.toml, metrics.jsonl or events.jsonl",
         fmt::join(folders, ", "));
  }
  const std::vector<std::string> names = distinct_names(good);
  for (size_t i = 0; i < good.size(); ++i) {
    const RunReport report = report_of(good[i]);
    runs.list.push_back(compared_run(report, names[i]));
    visit(runs.list.back(), report);
  }
  return runs;
}

std::vector<size_t> sort_runs(ComparedRuns& runs, const std::string& figure) {
  std::vector<std::string_view> known;
  std::optional<bool> higher_is_better;
  for (const ComparedRun& run : runs.list) {
    for (const RunFigure& one : run.figures) {
      if (std::find(known.begin(), known.end(), one.name) == known.end()) known.push_back(one.name);
      if (one.name == figure) higher_is_better = one.higher_is_better;
    }
  }
  if (!higher_is_better) {
    const std::string_view nearest = nearest_name(figure, known);
    fail(ErrorCode::kUsage, "--sort {}: no run has that figure{}; expected one of: {}", figure,
         nearest.empty() ? "" : fmt::format(": did you mean {}?", nearest), fmt::join(known, ", "));
  }
  std::vector<size_t> order(runs.list.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const RunFigure* one = runs.list[a].find(figure);
    const RunFigure* other = runs.list[b].find(figure);
    if (one == nullptr || other == nullptr) return one != nullptr && other == nullptr;
    return *higher_is_better ? one->value > other->value : one->value < other->value;
  });
  std::vector<ComparedRun> sorted;
  for (const size_t i : order) sorted.push_back(std::move(runs.list[i]));
  runs.list = std::move(sorted);
  return order;
}

std::vector<SettingDifference> differences_of(const ComparedRuns& runs) {
  std::vector<RunSettings> starts;
  std::vector<const RunSettings*> of_starts, of_configs;
  starts.reserve(runs.list.size());
  for (const ComparedRun& run : runs.list) {
    RunSettings start;
    for (const auto& [key, value] : run.events.start)
      start.values.emplace_back("start." + key, value);
    if (start.values.empty()) start.note = "has no start";
    starts.push_back(std::move(start));
    of_starts.push_back(&starts.back());
    of_configs.push_back(&run.settings);
  }
  std::vector<SettingDifference> differences = setting_differences(of_configs);
  for (SettingDifference& one : setting_differences(of_starts)) {
    differences.push_back(std::move(one));
  }
  return differences;
}

}  // namespace skein
