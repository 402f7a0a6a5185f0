#include "skein/record/report/report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "skein/base/ending.h"
#include "skein/base/error.h"
#include "skein/checkpoint/find/run_lock.h"
#include "skein/config/config.h"
#include "skein/config/sweep_folder.h"
#include "skein/record/files/event_fields.h"
#include "skein/record/files/jsonl.h"
#include "skein/record/log/spikes.h"
#include "skein/record/report/ceiling.h"
#include "skein/record/report/idle_starts.h"
#include "skein/record/report/run_starts.h"

namespace skein {
namespace {

std::optional<int64_t> integer(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

std::string text_or_empty(const Json& json, const char* key) { return text_or(json, key, ""); }

float finite_or_zero(float value) { return std::isfinite(value) ? value : 0; }

// Builds a report from both files. Events are read first, since they tell which steps a later start
// discarded.
class ReportReader {
 public:
  explicit ReportReader(const fs::path& run_dir) { report_.run_dir = run_dir.string(); }

  void read_events(const fs::path& path) {
    report_.num_bad_lines += for_each_json_line(path, [&](const Json& json) {
      if (text_or_empty(json, "event").empty()) {
        ++report_.num_bad_lines;
        return;
      }
      idle_starts_.add(json, [this](const Json& counts) { read_event(counts); });
    });
    idle_starts_.flush([this](const Json& counts) { read_event(counts); });
  }

  void read_metrics(const fs::path& path) {
    report_.num_bad_lines += for_each_json_line(path, [&](const Json& json) {
      const std::optional<StepMetrics> metrics = parse_metrics(json);
      if (metrics) {
        report_.time.add_step(*metrics);
        ceiling_.add_step(*metrics);
        add_step(*metrics);
        add_evaluated(metrics->step, json);
      } else {
        ++report_.num_bad_lines;
      }
    });
    while (next_start_ < starts_.size()) leave_behind(starts_[next_start_++].step);
  }

  RunReport finish() {
    report_.time.settle();
    for (const auto& [step, metrics] : steps_) {
      report_.steps.push_back(metrics);
      report_.checkpoint_stall_seconds += finite_or_zero(metrics.checkpoint_stall_ms) / 1e3;
    }
    for (const auto& [step, score] : evaluated_) report_.evaluated.push_back({step, score});
    for (const auto& [step, score] : evaluations_) report_.evaluated.push_back({step, score});
    std::stable_sort(report_.evaluated.begin(), report_.evaluated.end(),
                     [](const auto& a, const auto& b) { return a.step < b.step; });
    count_spikes();
    ceiling_.rescale(report_.steps);
    report_.ceiling_flops = ceiling_.newest();
    for (const auto& [at, loss] : validations_) {
      report_.validations.push_back({at.first, loss, at.second});
    }
    report_.num_restarts = std::max<int64_t>(num_starts_ - 1, 0);
    if (is_open_) end_without_word();
    std::stable_sort(report_.failures.begin(), report_.failures.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
    return std::move(report_);
  }

 private:
  struct Start {
    double time;
    int64_t step;
    int64_t number;
  };

  void count_spikes() {
    SpikeDetector spikes;
    int64_t outstanding = 0;  // steps so far
    const auto end = [&] {
      if (outstanding > 0) ++report_.outstanding_spikes[outstanding];
      outstanding = 0;
    };
    for (const StepMetrics& metrics : report_.steps) {
      const SpikeDetector::Verdict verdict = spikes.observe(metrics.grad_norm);
      if (!verdict.alarm.empty()) ++report_.num_alarms;
      if (verdict.stands_out) {
        if (outstanding++ == 0) report_.spikes.push_back({metrics.step, 0, metrics.grad_norm});
        RunReport::Spike& spike = report_.spikes.back();
        spike.length = outstanding;
        if (!(metrics.grad_norm <= spike.highest_norm)) spike.highest_norm = metrics.grad_norm;
      } else {
        end();
      }
    }
    end();
    report_.spikes_by_length = spikes.counts_by_length();
    if (spikes.spike_steps() > 0) ++report_.spikes_by_length[spikes.spike_steps()];
  }

  void read_event(const Json& json) {
    const double time = number_or(json, "time", 0);
    const std::string event = text_or_empty(json, "event");
    report_.time.add_event(json);
    if (event == "start") begin_start(time, json);
    if (event == "roll_back") begin_after(time, integer(json, "to_step").value_or(0), num_starts_);
    if (time > 0) last_time_ = std::max(last_time_, time);
    last_event_time_ = std::max(last_event_time_, time);
    add_event(event, time, json);
  }

  void begin_start(double time, const Json& json) {
    ceiling_.add_start(json);
    for (const RecordedChange& change : recorded_changes(json)) {
      report_.changes.push_back(
          {integer(json, "step").value_or(0), change.key, change.before, change.after});
    }
    first_failure_ = report_.failures.size();
    lost_.clear();
    if (is_open_ && !is_explained_) vanished(last_event_time_);
    is_open_ = true;
    is_explained_ = has_failed_ = told_by_generation_ = false;
    ++num_starts_;
    report_.end = RunReport::End::kUnknown;
    begin_after(time, integer(json, "step").value_or(0),
                integer(json, "number").value_or(num_starts_));
  }

  // From here on the run goes on after `step`.
  void begin_after(double time, int64_t step, int64_t number) {
    starts_.push_back({time, step, number});
    std::erase_if(validations_, [&](const auto& one) { return one.first.first > step; });
    std::erase_if(evaluations_, [&](const auto& one) { return one.first > step; });
  }

  void add_step(const StepMetrics& metrics) {
    const auto has_come = [&](const Start& start) {  // before this step was done
      return metrics.start > 0 ? start.number <= metrics.start
                               : metrics.time > 0 && start.time <= metrics.time;
    };
    while (next_start_ < starts_.size() && has_come(starts_[next_start_])) {
      leave_behind(starts_[next_start_++].step);
    }
    steps_.insert_or_assign(metrics.step, metrics);
    last_time_ = std::max(last_time_, metrics.time);
  }

  // Keys of other versions: an evaluation during training.
  void add_evaluated(int64_t step, const Json& json) {
    for (auto one = json.begin(); one != json.end(); ++one) {
      if (!one.key().starts_with("eval.") || !one.value().is_number()) continue;
      const std::string name = one.key().substr(std::string_view("eval.").size());
      const size_t dot = name.rfind('.');
      EvaluatedScore score;
      score.task = dot == std::string::npos ? name : name.substr(0, dot);
      score.metric = dot == std::string::npos ? "score" : name.substr(dot + 1);
      score.value = one.value().get<double>();
      evaluated_.emplace(step, std::move(score));
    }
  }

  // Of a score that a step has twice, the later one counts.
  void add_evaluation(int64_t step, EvaluatedScore score) {
    std::erase_if(evaluations_, [&](const auto& one) {
      return one.first == step && one.second.name() == score.name();
    });
    evaluations_.emplace(step, std::move(score));
  }

  // A start resumed after `step`, so all later steps until then are discarded.
  void leave_behind(int64_t step) {
    steps_.erase(steps_.upper_bound(step), steps_.end());
    std::erase_if(evaluated_, [&](const auto& one) { return one.first > step; });
  }

  void add_event(const std::string& event, double time, const Json& json) {
    if (event == "failure") {
      const auto fatal = json.find("fatal");
      RunReport::Failure failure{.time = time, .reason = text_or_empty(json, "reason")};
      failure.step = integer(json, "step");
      failure.rank = integer(json, "rank");
      failure.fatal = fatal != json.end() && fatal->is_boolean() && fatal->get<bool>();
      if (failure.fatal) end_with(RunReport::End::kFailed);
      // Of several machines, the one that failed may say so after another has begun again.
      const bool is_told = !failure.fatal && told_by_generation_ && !report_.failures.empty() &&
                           report_.failures.back().reason.find(failure.reason) != std::string::npos;
      if (is_told || ends_by_last_failure(failure)) report_.failures.pop_back();
      told_by_generation_ = false;
      has_failed_ |= failure.rank.has_value();
      report_.failures.push_back(std::move(failure));
    } else if (event == "host_lost" || event == "host_joined") {
      report_.machines.push_back({time, event == "host_lost", text_or_empty(json, "machine"),
                                  integer(json, "generation").value_or(0),
                                  text_or_empty(json, "reason")});
      if (event == "host_lost") lost_.push_back(report_.machines.back().name);
    } else if (event == "generation") {
      begin_generation(time, json);
    } else if (event == "checkpoint_commit") {
      ++report_.num_checkpoints;
      report_.last_checkpoint_step = integer(json, "step");
    } else if (event == "validation") {
      const std::optional<int64_t> step = integer(json, "step");
      const auto loss = static_cast<float>(number_or(json, "loss", std::nan("")));
      if (step) validations_[{*step, text_or_empty(json, "set")}] = loss;
    } else if (event == "evaluation") {
      const int64_t step = integer(json, "step").value_or(0);
      for (EvaluatedScore& score : scores_of_event(json)) add_evaluation(step, std::move(score));
    } else if (event == "checkpoint_skip") {
      report_.skipped_checkpoints.push_back(
          {integer(json, "step").value_or(0), text_or_empty(json, "reason")});
    } else if (event == "roll_back") {
      ++report_.num_roll_backs;
    } else if (event == "stop") {
      report_.last_stop_reason = text_or_empty(json, "reason");
      end_with(RunReport::End::kStopped);
    }
  }

  // A last save that failed has two events: one of the save, and one of the end of the run.
  bool ends_by_last_failure(const RunReport::Failure& failure) const {
    if (!failure.fatal || report_.failures.empty()) return false;
    const RunReport::Failure& last = report_.failures.back();
    return !last.fatal && last.step == failure.step && !last.reason.empty() &&
           failure.reason.starts_with(last.reason);
  }

  // The supervisor says why the one before ended, unless a worker's failure was written down.
  void begin_generation(double time, const Json& json) {
    if (!lost_.empty() && is_loss_of_machine(text_or_empty(json, "cause"))) {
      lose_machines(time);
    } else if (is_open_ && !has_failed_) {
      report_.failures.push_back(
          {.time = time, .reason = text_or_empty(json, "reason"), .fatal = false});
      told_by_generation_ = true;
    }
    is_explained_ = true;
  }

  // In place of what the workers of the other machines said.
  void lose_machines(double time) {
    const auto begin = report_.failures.begin() + static_cast<std::ptrdiff_t>(first_failure_);
    std::optional<int64_t> step;
    for (auto failure = begin; failure != report_.failures.end(); ++failure) {
      if (failure->rank && failure->step) step = failure->step;
    }
    const auto is_consequence = [](const auto& failure) { return failure.rank && !failure.fatal; };
    report_.failures.erase(std::remove_if(begin, report_.failures.end(), is_consequence),
                           report_.failures.end());
    for (const std::string& machine : lost_) {
      report_.failures.push_back({.time = time,
                                  .reason = "lost the machine " + machine,
                                  .step = step,
                                  .fatal = false,
                                  .machine = machine});
    }
    lost_.clear();
  }

  void end_with(RunReport::End end) {
    is_open_ = false;
    report_.end = end;
  }

  void vanished(double time) {
    report_.failures.push_back(
        {.time = time, .reason = "ended without a word: killed, or the machine went down"});
    report_.end = RunReport::End::kVanished;
  }

  // The newest start has neither a stop nor a failure event.
  void end_without_word() {
    const RunHolder holder = run_holder(report_.run_dir);
    report_.end =
        holder == RunHolder::kThisMachine ? RunReport::End::kRunning : RunReport::End::kUnknown;
    if (holder != RunHolder::kNobody) return;
    vanished(last_time_);
    if (!report_.steps.empty()) report_.failures.back().step = report_.steps.back().step;
  }

  RunReport report_;
  std::map<int64_t, StepMetrics> steps_;
  std::map<std::pair<int64_t, std::string>, float> validations_;  // by step and set
  std::multimap<int64_t, EvaluatedScore> evaluated_;              // of metrics.jsonl, by step
  std::multimap<int64_t, EvaluatedScore> evaluations_;            // events, likewise
  std::vector<Start> starts_;                                     // and roll-backs
  int64_t num_starts_ = 0;
  size_t next_start_ = 0;            // the first start with no later step so far
  bool is_open_ = false;             // the newest start has neither stopped nor failed so far
  bool is_explained_ = false;        // a generation follows it, which says why it ended
  bool has_failed_ = false;          // a worker of it has, and training goes on
  bool told_by_generation_ = false;  // the newest failure is what a generation said
  size_t first_failure_ = 0;         // of the newest start, among the failures
  std::vector<std::string> lost_;    // machines, since the newest start
  IdleStarts idle_starts_;
  ReportCeiling ceiling_;
  double last_time_ = 0;
  double last_event_time_ = 0;
};

float median_of(const std::vector<StepMetrics>& steps, float StepMetrics::*value) {
  std::vector<float> values;
  for (const StepMetrics& metrics : steps) {
    if (std::isfinite(metrics.*value)) values.push_back(metrics.*value);
  }
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double RunReport::other_seconds() const {
  return std::max(0.0, wall_seconds() - time.seconds(TimePart::kProductive) -
                           time.seconds(TimePart::kDataWait) - checkpoint_stall_seconds -
                           time.seconds(TimePart::kRedone));
}

double RunReport::one_step_spikes() const { return one_step_share(spikes_by_length); }

const StepMetrics* RunReport::best() const {
  const StepMetrics* best = nullptr;
  for (const StepMetrics& metrics : steps) {
    if (std::isfinite(metrics.loss) && (!best || metrics.loss < best->loss)) best = &metrics;
  }
  return best;
}

const StepMetrics* RunReport::peak_learning_rate() const {
  const auto peak = std::max_element(
      steps.begin(), steps.end(),
      [](const StepMetrics& a, const StepMetrics& b) { return a.learning_rate < b.learning_rate; });
  return peak == steps.end() ? nullptr : &*peak;
}

std::map<std::string, RunReport::Validation> RunReport::best_validations() const {
  std::map<std::string, Validation> best;
  for (const Validation& validation : validations) {
    if (!std::isfinite(validation.loss)) continue;
    const auto [found, is_new] = best.emplace(validation.set, validation);
    if (!is_new && validation.loss < found->second.loss) found->second = validation;
  }
  return best;
}

float RunReport::median_tokens_per_s() const {
  return median_of(steps, &StepMetrics::tokens_per_s);
}

float RunReport::median_utilization() const {
  return median_of(steps, &StepMetrics::matmul_ceiling_share);
}

RunReport read_report(const fs::path& run_dir) {
  const fs::path metrics = run_dir / "metrics.jsonl", events = run_dir / "events.jsonl";
  if (!fs::exists(metrics) && !fs::exists(events)) {
    fail(ErrorCode::kNotFound, "{}: expected a run folder, with metrics.jsonl or events.jsonl{}",
         run_dir.string(), sweep_advice(run_dir));
  }
  ReportReader reader(run_dir);
  reader.read_events(events);
  reader.read_metrics(metrics);
  RunReport report = reader.finish();
  Result<Config> config = try_run([&] {
    return parse_config(read_file(run_dir / "config.toml"), (run_dir / "config.toml").string());
  });
  if (config.ok()) report.planned_steps = config.value().run.steps;
  return report;
}

}  // namespace skein
