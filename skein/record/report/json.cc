#include "skein/record/report/float_json.h"
#include "skein/record/report/report.h"

namespace skein {
namespace {

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

OrderedJson spikes_json(const std::map<int64_t, int64_t>& by_length) {
  OrderedJson spikes = OrderedJson::array();
  for (const auto& [length, count] : by_length) {
    spikes.push_back({{"length", length}, {"count", count}});
  }
  return spikes;
}

OrderedJson learning_rate_json(const RunReport& report) {
  if (report.steps.empty()) return nullptr;
  const StepMetrics& peak = *report.peak_learning_rate();
  return {{"first", float_json(report.steps.front().learning_rate)},
          {"peak", float_json(peak.learning_rate)},
          {"peak_step", peak.step},
          {"last", float_json(report.steps.back().learning_rate)}};
}

OrderedJson validation_json(const RunReport::Validation& validation) {
  OrderedJson json = {{"step", validation.step}, {"loss", float_json(validation.loss)}};
  if (!validation.set.empty()) json["set"] = validation.set;
  return json;
}

OrderedJson best_validations_json(const RunReport& report) {
  OrderedJson json = OrderedJson::array();
  for (const auto& [set, best] : report.best_validations()) json.push_back(validation_json(best));
  return json;
}

OrderedJson evaluations_json(const RunReport& report) {
  OrderedJson json = OrderedJson::array();
  for (const RunReport::Evaluated& evaluated : report.evaluated) {
    OrderedJson one = {{"step", evaluated.step}};
    one.update(scores_to_json({evaluated.score}).front());
    json.push_back(std::move(one));
  }
  return json;
}

OrderedJson changes_json(const RunReport& report) {
  OrderedJson json = OrderedJson::array();
  for (const RunReport::Changed& changed : report.changes) {
    json.push_back({{"step", changed.step},
                    {"key", changed.key},
                    {"before", changed.before},
                    {"after", changed.after}});
  }
  return json;
}

OrderedJson machines_json(const RunReport& report, bool lost) {
  OrderedJson json = OrderedJson::array();
  for (const RunReport::Machine& machine : report.machines) {
    if (machine.is_lost != lost) continue;
    json.push_back(
        {{"time", machine.time}, {"machine", machine.name}, {"generation", machine.generation}});
    if (lost) json.back()["reason"] = machine.reason;
  }
  return json;
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

}  // namespace

OrderedJson report_json(const RunReport& report) {
  OrderedJson json = {{"run", report.run_dir}, {"steps", 0}, {"planned_steps", nullptr}};
  if (report.planned_steps) json["planned_steps"] = *report.planned_steps;
  for (const char* key : {"final_loss", "best_loss", "best_loss_step", "best_validation_loss",
                          "best_validation_step"})
    json[key] = nullptr;
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
    json["validation"].push_back(validation_json(validation));
  }
  for (const auto& [set, best] : report.best_validations()) {
    if (!set.empty()) continue;
    json["best_validation_loss"] = float_json(best.loss);
    json["best_validation_step"] = best.step;
  }
  json["best_validations"] = best_validations_json(report);
  json["evaluations"] = evaluations_json(report);
  json["learning_rate"] = learning_rate_json(report);
  json["changes"] = changes_json(report);
  json["skipped_checkpoints"] = OrderedJson::array();
  for (const RunReport::Skipped& skipped : report.skipped_checkpoints) {
    json["skipped_checkpoints"].push_back({{"step", skipped.step}, {"reason", skipped.reason}});
  }
  json["median_tokens_per_s"] = float_json(report.median_tokens_per_s());
  json["median_model_flops_utilization"] = float_json(report.median_utilization());  // former name
  json["median_matmul_ceiling_share"] = float_json(report.median_utilization());
  json["ceiling_flops"] = report.ceiling_flops;
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
    if (!failure.machine.empty()) one["machine"] = failure.machine;
    json["failures"].push_back(std::move(one));
  }
  json["hosts_lost"] = machines_json(report, true);
  json["hosts_joined"] = machines_json(report, false);
  json["end"] = end_name(report.end);
  json["checkpoints"] = report.num_checkpoints;
  json["last_checkpoint_step"] = nullptr;
  if (report.last_checkpoint_step) json["last_checkpoint_step"] = *report.last_checkpoint_step;
  json["grad_spikes"] = spikes_json(report.spikes_by_length);
  json["grad_spikes_above_noise"] = spikes_json(report.outstanding_spikes);
  json["grad_spikes_of_one_step"] = report.one_step_spikes();
  json["grad_alarms"] = report.num_alarms;
  json["last_stop_reason"] = report.last_stop_reason;
  json["bad_lines"] = report.num_bad_lines;
  return json;
}

}  // namespace skein
