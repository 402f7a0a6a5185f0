#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "skein/base/units.h"
#include "skein/record/report.h"
#include "skein/record/text_plot.h"

namespace skein {
namespace {

// The double that prints with the float's own digits; null for a float that is not finite.
OrderedJson float_json(float value) {
  if (!std::isfinite(value)) return nullptr;
  return OrderedJson::parse(json_float(value)).get<double>();
}

OrderedJson goodput_json(const RunReport& report) {
  const TimeLedger& time = report.time;
  OrderedJson parts = OrderedJson::object();
  for (int i = 0; i < kNumTimeParts; ++i) {
    const auto part = static_cast<TimePart>(i);
    parts[time_part_name(part)] = time.seconds(part);
  }
  return {{"wall_seconds", report.wall_seconds()},
          {"useful_seconds", time.seconds(TimePart::kProductive)},
          {"data_wait_seconds", time.seconds(TimePart::kDataWait)},
          {"checkpoint_stall_seconds", report.checkpoint_stall_seconds},
          {"redone_seconds", time.seconds(TimePart::kRedone)},
          {"other_seconds", report.other_seconds()},
          {"between_starts_seconds", static_cast<double>(time.between_starts_micros()) / 1e6},
          {"parts", std::move(parts)}};
}

OrderedJson spikes_json(const RunReport& report) {
  OrderedJson spikes = OrderedJson::array();
  for (const auto& [length, count] : report.spikes_by_length) {
    spikes.push_back({{"length", length}, {"count", count}});
  }
  return spikes;
}

class Rows {
 public:
  template <typename... Args>
  void add(const std::string& name, fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format("{:<13} {}\n", name, fmt::format(format, std::forward<Args>(args)...));
  }
  void append(const std::string& text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_loss(Rows& rows, const RunReport& report) {
  if (report.steps.empty()) return;
  const StepMetrics& last = report.steps.back();
  rows.add("loss", "{:.4f} at step {}", last.loss, last.step);
  if (const StepMetrics* best = report.best()) {
    rows.add("best loss", "{:.4f} at step {}", best->loss, best->step);
  }
  std::map<std::string, std::pair<RunReport::Validation, int64_t>> newest;  // of each set
  for (const RunReport::Validation& validation : report.validations) {
    newest[validation.set] = {validation, newest[validation.set].second + 1};
  }
  for (const auto& [set, found] : newest) {
    rows.add(set.empty() ? "validation" : "validation, " + set, "{:.4f} at step {} ({} in all)",
             found.first.loss, found.first.step, found.second);
  }
  rows.add("tokens", "{}, {:.3g} epochs", format_count(static_cast<double>(last.tokens)),
           last.epoch);
  for (const auto& [name, epochs] : last.epochs) rows.add("  of " + name, "{:.3g} epochs", epochs);
  const std::string ceiling = report.ceiling_flops > 0
                                  ? fmt::format(", {}FLOP/s", format_count(report.ceiling_flops))
                                  : std::string();
  rows.add("throughput", "{} tokens/s, {:.1f}% of the measured matrix-product rate{} (medians)",
           format_count(report.median_tokens_per_s()), 100 * report.median_utilization(), ceiling);
}

// Every part that took time, in the order in which a step meets them.
void add_time(Rows& rows, const RunReport& report) {
  constexpr const char* kSaid[kNumTimeParts] = {"productive",
                                                "waiting for data",
                                                "saving",
                                                "replicating",
                                                "redone: steps that were lost",
                                                "validating",
                                                "starting",
                                                "detecting failures",
                                                "recovering from them",
                                                "waiting for machines, a back-off, or a new start"};
  if (report.wall_seconds() <= 0) return;
  rows.add("wall time", "{}", format_duration(report.wall_seconds()));
  rows.add("goodput", "{:.2f}%", 100 * report.goodput());
  for (int i = 0; i < kNumTimeParts; ++i) {
    const double seconds = report.time.seconds(static_cast<TimePart>(i));
    if (seconds == 0) continue;
    rows.add("", "{:>9} {:6.2f}%  {}", format_duration(seconds),
             100 * seconds / report.wall_seconds(), kSaid[i]);
  }
}

void add_end(Rows& rows, const RunReport& report) {
  switch (report.end) {
    case RunReport::End::kNone:
      return;
    case RunReport::End::kStopped:
      return rows.add("stopped", "{}",
                      report.last_stop_reason.empty() ? "?" : report.last_stop_reason);
    case RunReport::End::kFailed:
      return rows.add("stopped", "failed: {}", report.failures.back().reason);
    case RunReport::End::kVanished:
      return rows.add("stopped", "{}", report.failures.back().reason);
    case RunReport::End::kRunning:
      return rows.add("stopped", "no, it is running");
    case RunReport::End::kUnknown:
      return rows.add("stopped", "unknown: it runs on another machine, or was killed there");
  }
}

const char* end_name(RunReport::End end) {
  switch (end) {
    case RunReport::End::kNone:
      return "none";
    case RunReport::End::kStopped:
      return "stopped";
    case RunReport::End::kFailed:
      return "failed";
    case RunReport::End::kVanished:
      return "vanished";
    case RunReport::End::kRunning:
      return "running";
    case RunReport::End::kUnknown:
      return "unknown";
  }
  return "unknown";
}

void add_events(Rows& rows, const RunReport& report) {
  rows.add("restarts", "{}", report.num_restarts);
  if (report.num_roll_backs > 0) rows.add("roll-backs", "{}", report.num_roll_backs);
  std::string last;
  if (!report.failures.empty() && report.failures.back().step) {
    last = fmt::format(", the last after step {}", *report.failures.back().step);
  }
  rows.add("failures", "{}{}", report.failures.size(), last);
  constexpr size_t kMostFailures = 10;
  const size_t first =
      report.failures.size() > kMostFailures ? report.failures.size() - kMostFailures : 0;
  for (size_t i = first; i < report.failures.size(); ++i) {
    const RunReport::Failure& failure = report.failures[i];
    rows.add("", "{}{}", failure.reason.empty() ? "?" : failure.reason,
             failure.fatal ? "" : " (training went on)");
  }
  rows.add("checkpoints", "{}{}", report.num_checkpoints,
           report.last_checkpoint_step
               ? fmt::format(", the last at step {}", *report.last_checkpoint_step)
               : "");
  std::string spikes;
  for (const auto& [length, count] : report.spikes_by_length) {
    spikes += fmt::format("{}{} of {} step{}", spikes.empty() ? "" : ", ", count, length,
                          length == 1 ? "" : "s");
  }
  if (!spikes.empty()) {
    spikes += fmt::format("; {:.0f}% last one step", 100 * report.one_step_spikes());
  }
  rows.add("grad spikes", "{}{}", spikes.empty() ? "none" : spikes,
           report.num_alarms
               ? fmt::format("; {} alarm{}", report.num_alarms, report.num_alarms == 1 ? "" : "s")
               : "");
  add_end(rows, report);
  if (report.num_bad_lines) rows.add("bad lines", "{} skipped", report.num_bad_lines);
}

}  // namespace

OrderedJson report_json(const RunReport& report) {
  OrderedJson json = {{"run", report.run_dir}, {"steps", 0}, {"planned_steps", nullptr}};
  if (report.planned_steps) json["planned_steps"] = *report.planned_steps;
  for (const char* key : {"final_loss", "best_loss", "best_loss_step"}) json[key] = nullptr;
  json["tokens"] = 0;
  if (!report.steps.empty()) {
    json["steps"] = report.steps.back().step;
    json["final_loss"] = float_json(report.steps.back().loss);
    json["tokens"] = report.steps.back().tokens;
    json["epoch"] = float_json(report.steps.back().epoch);
  }
  if (const StepMetrics* best = report.best()) {
    json["best_loss"] = float_json(best->loss);
    json["best_loss_step"] = best->step;
  }
  json["validation"] = OrderedJson::array();
  for (const auto& validation : report.validations) {
    OrderedJson one = {{"step", validation.step}, {"loss", float_json(validation.loss)}};
    if (!validation.set.empty()) one["set"] = validation.set;
    json["validation"].push_back(std::move(one));
  }
  json["median_tokens_per_s"] = float_json(report.median_tokens_per_s());
  json["median_model_flops_utilization"] = float_json(report.median_utilization());
  json["goodput"] = report.goodput();
  json["time"] = goodput_json(report);
  json["restarts"] = report.num_restarts;
  json["roll_backs"] = report.num_roll_backs;
  json["failures"] = OrderedJson::array();
  for (const auto& failure : report.failures) {
    OrderedJson one = {{"time", failure.time}, {"reason", failure.reason}};
    one["step"] = failure.step ? OrderedJson(*failure.step) : OrderedJson(nullptr);
    one["rank"] = failure.rank ? OrderedJson(*failure.rank) : OrderedJson(nullptr);
    one["fatal"] = failure.fatal;
    json["failures"].push_back(std::move(one));
  }
  json["end"] = end_name(report.end);
  json["checkpoints"] = report.num_checkpoints;
  json["last_checkpoint_step"] = nullptr;
  if (report.last_checkpoint_step) json["last_checkpoint_step"] = *report.last_checkpoint_step;
  json["grad_spikes"] = spikes_json(report);
  json["grad_spikes_of_one_step"] = report.one_step_spikes();
  json["grad_alarms"] = report.num_alarms;
  json["last_stop_reason"] = report.last_stop_reason;
  json["bad_lines"] = report.num_bad_lines;
  return json;
}

std::string report_text(const RunReport& report) {
  constexpr int kPlotWidth = 64, kPlotHeight = 8;
  Rows rows;
  rows.add("run", "{}", report.run_dir);
  const int64_t last_step = report.steps.empty() ? 0 : report.steps.back().step;
  rows.add("steps", "{}{}", last_step,
           report.planned_steps ? fmt::format(" of {}", *report.planned_steps) : "");
  add_loss(rows, report);
  add_time(rows, report);
  add_events(rows, report);
  std::vector<PlotPoint> points;
  for (const StepMetrics& metrics : report.steps) {
    points.push_back({static_cast<double>(metrics.step), metrics.loss});
  }
  const int width = static_cast<int>(std::min<size_t>(points.size(), kPlotWidth));
  const std::string plot = text_plot(points, width, kPlotHeight);
  if (!plot.empty()) rows.append("\nloss over steps\n" + plot);
  return rows.take();
}

}  // namespace skein
