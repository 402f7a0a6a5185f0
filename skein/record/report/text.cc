#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "skein/base/text/units.h"
#include "skein/base/text/visible_text.h"
#include "skein/record/log/spikes.h"
#include "skein/record/report/report.h"
#include "skein/record/report/text_plot.h"

namespace skein {
namespace {

class Rows {
 public:
  template <typename... Args>
  void add(const std::string& name, fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format("{:<13} {}\n", name,
                         visible_line(fmt::format(format, std::forward<Args>(args)...)));
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
  const std::map<std::string, RunReport::Validation> best = report.best_validations();
  for (const auto& [set, found] : newest) {
    const auto lowest = best.find(set);
    const std::string told =
        lowest == best.end()
            ? std::string()
            : fmt::format("; best {:.4f} at step {}", lowest->second.loss, lowest->second.step);
    rows.add(set.empty() ? "validation" : "validation, " + set, "{:.4f} at step {} ({} in all){}",
             found.first.loss, found.first.step, found.second, told);
  }
  std::map<std::string, std::pair<RunReport::Evaluated, int64_t>> scores;  // the newest of each
  for (const RunReport::Evaluated& evaluated : report.evaluated) {
    auto& newest = scores[evaluated.score.name()];
    newest = {evaluated, newest.second + 1};
  }
  for (const auto& [name, found] : scores) {
    const EvaluatedScore& score = found.first.score;
    rows.add(score.task + ", " + score.metric, "{:.4f}{} at step {} ({} in all)", score.value,
             score.error ? fmt::format(" ± {:.4f}", *score.error) : "", found.first.step,
             found.second);
  }
  const StepMetrics& peak = *report.peak_learning_rate();
  rows.add("learning rate", "{:.3g} at step {}, peak {:.3g} at step {}, {:.3g} at step {}",
           report.steps.front().learning_rate, report.steps.front().step, peak.learning_rate,
           peak.step, last.learning_rate, last.step);
  rows.add("tokens", "{}, {:.3g} epochs", format_count(static_cast<double>(last.tokens)),
           last.epoch);
  for (const auto& [name, epochs] : last.epochs) rows.add("  of " + name, "{:.3g} epochs", epochs);
  const std::string ceiling =
      report.ceiling_flops > 0
          ? fmt::format(", {}FLOP/s of matrix products", format_count(report.ceiling_flops))
          : std::string();
  rows.add("throughput", "{} tokens/s, {:.1f}% of the measured ceiling{} (medians)",
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
  const double between = static_cast<double>(report.time.between_starts_micros()) / 1e6;
  rows.add("goodput", "{:.2f}%{}", 100 * report.goodput(),
           between < 1 || report.goodput() == 0
               ? ""
               : fmt::format("; {:.2f}% without the {} in which no process lived",
                             100 * report.goodput() * report.wall_seconds() /
                                 (report.wall_seconds() - between),
                             format_duration(between)));
  for (int i = 0; i < kNumTimeParts; ++i) {
    const double seconds = report.time.seconds(static_cast<TimePart>(i));
    if (seconds == 0) continue;
    rows.add("", "{:>9} {:6.2f}%  {}", format_duration(seconds),
             100 * seconds / report.wall_seconds(), kSaid[i]);
  }
}

// A reason is a text for people, except where the workers stop for a moment.
std::string stop_text(const std::string& reason) {
  if (reason == "regroup") return "to take in another machine, and training has not begun again";
  return reason.empty() ? "?" : reason;
}

void add_end(Rows& rows, const RunReport& report) {
  switch (report.end) {
    case RunReport::End::kNone:
      return;
    case RunReport::End::kStopped:
      return rows.add("stopped", "{}", stop_text(report.last_stop_reason));
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

void add_changes(Rows& rows, const RunReport& report) {
  constexpr size_t kMost = 20;
  const size_t count = report.changes.size(), first = count > kMost ? count - kMost : 0;
  for (size_t i = first; i < count; ++i) {
    const RunReport::Changed& changed = report.changes[i];
    rows.add(i == first ? "changed" : "", "after step {}: {} from {} to {}", changed.step,
             changed.key, changed.before.empty() ? "\"\"" : changed.before,
             changed.after.empty() ? "\"\"" : changed.after);
  }
}

// As each start that resumed from one before them found.
void add_skipped(Rows& rows, const RunReport& report) {
  for (const RunReport::Skipped& skipped : report.skipped_checkpoints) {
    const bool is_first = &skipped == report.skipped_checkpoints.data();
    rows.add(is_first ? "passed over" : "", "the checkpoint of step {}: {}", skipped.step,
             skipped.reason);
  }
}

void add_machines(Rows& rows, const RunReport& report) {
  constexpr size_t kMost = 10;
  const size_t count = report.machines.size(), first = count > kMost ? count - kMost : 0;
  for (size_t i = first; i < count; ++i) {
    const RunReport::Machine& machine = report.machines[i];
    rows.add(i == first ? "machines" : "", "generation {} {} {}{}", machine.generation,
             machine.is_lost ? "began without" : "took in", machine.name,
             machine.reason.empty() ? "" : ": " + machine.reason);
  }
}

void add_failures(Rows& rows, const RunReport& report) {
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
             failure.fatal ? "" : " (training continued)");
  }
}

// Those of a norm that is noisier than the margin of 0.1 say nothing, and are not listed.
void add_spikes(Rows& rows, const RunReport& report) {
  std::string spikes;
  for (const auto& [length, count] : report.outstanding_spikes) {
    spikes += fmt::format("{}{} of {}", spikes.empty() ? "" : ", ", count, counted(length, "step"));
  }
  if (!spikes.empty()) {
    spikes +=
        fmt::format("; {:.0f}% last one step", 100 * one_step_share(report.outstanding_spikes));
  }
  rows.add("grad spikes", "{}{}", spikes.empty() ? "none beyond the noise of the norm" : spikes,
           report.num_alarms ? "; " + counted(report.num_alarms, "alarm") : "");
}

void add_events(Rows& rows, const RunReport& report) {
  rows.add("restarts", "{}", report.num_restarts);
  if (report.num_roll_backs > 0) rows.add("roll-backs", "{}", report.num_roll_backs);
  add_skipped(rows, report);
  add_changes(rows, report);
  add_machines(rows, report);
  add_failures(rows, report);
  rows.add("checkpoints", "{}{}", report.num_checkpoints,
           report.last_checkpoint_step
               ? fmt::format(", the last at step {}", *report.last_checkpoint_step)
               : "");
  add_spikes(rows, report);
  add_end(rows, report);
  if (report.num_bad_lines) rows.add("bad lines", "{} skipped", report.num_bad_lines);
}

}  // namespace

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
