#include "skein/record/watch/run_state.h"

#include <algorithm>
#include <cmath>

#include "skein/base/ending.h"
#include "skein/record/files/event_fields.h"

namespace skein {
namespace {

std::string label(const char* name, std::string value) {
  std::replace(value.begin(), value.end(), ' ', '_');
  std::erase_if(value, [](char c) { return c == '"' || c == '\\' || c == '\n'; });
  return fmt::format("{}=\"{}\"", name, value);
}

}  // namespace

void RunState::add_event(const Json& event) {
  idle_starts_.add(event, [this](const Json& counted) { count_event(counted); });
}

void RunState::add_step(const StepMetrics& metrics) {
  idle_starts_.flush([this](const Json& event) { count_event(event); });
  ledger_.add_step(metrics);
  spikes_.observe(metrics.grad_norm);
  newest_ = metrics;
}

void RunState::count_event(const Json& event) {
  ledger_.add_event(event);
  const std::string name = text_or(event, "event", "");
  if (name != "failure") ++events_by_name_[name];
  if (name == "start") {
    memory_bytes_ = 0;
    const auto allocated = event.find("allocated_bytes");
    if (allocated == event.end() || !allocated->is_object()) return;
    for (const auto& [arena, bytes] : allocated->items()) {
      if (bytes.is_number_integer()) memory_bytes_ += bytes.get<int64_t>();
    }
  } else if (name == "generation") {
    ++restarts_by_cause_[text_or(event, "cause", "unknown")];
  } else if (name == "checkpoint_commit") {
    checkpoint_step_ = integer_or(event, "step", 0);
    checkpoint_time_ = number_or(event, "time", 0);
  } else if (name == "validation") {
    validation_losses_[text_or(event, "set", "")] = number_or(event, "loss", std::nan(""));
  } else if (name == "evaluation") {
    for (EvaluatedScore& score : scores_of_event(event)) scores_[score.name()] = std::move(score);
  } else if (name == "failure" && bool_or(event, "fatal", false)) {
    ++fatal_failures_;
  } else if (name == "failure" && !event.contains("rank")) {
    ++checkpoint_failures_;
  }
}

void RunState::add_newest(PrometheusText& text, double now, bool is_whole) const {
  if (newest_) {
    const int64_t spike_steps = is_whole ? spikes_.spike_steps() : 0;
    add_step_metrics(text, {*newest_, total_steps_, memory_bytes_, spike_steps});
  }
  text.gauge("step_age_seconds", std::max(0.0, now - (newest_ ? newest_->time : began_)),
             "Since the newest step ended; before the first one since this process began.");
  add_scores(text);
}

void RunState::add_scores(PrometheusText& text) const {
  if (!validation_losses_.empty()) {
    text.family("validation_loss", "gauge",
                "Of the newest validation, in nats per token, by data.validation_set.");
  }
  for (const auto& [set, loss] : validation_losses_) {
    text.sample(loss, PrometheusText::label("set", set));
  }
  if (!scores_.empty()) {
    text.family("evaluation", "gauge", "Of the newest evaluation in training.");
  }
  for (const auto& [name, score] : scores_) {
    text.sample(score.value, PrometheusText::label("task", score.task) + "," +
                                 PrometheusText::label("metric", score.metric));
  }
}

void RunState::add_times(PrometheusText& text) const {
  text.family("time_seconds", "gauge", "Where the time since the first launch went, by part.");
  for (int i = 0; i < kNumTimeParts; ++i) {
    const auto part = static_cast<TimePart>(i);
    text.sample(ledger_.seconds(part), label("part", time_part_name(part)));
  }
  text.gauge("goodput_ratio", ledger_.goodput(), "Productive seconds over all of them, 0 to 1.");
}

void RunState::add_failures(PrometheusText& text) const {
  const auto number_of = [](const std::map<std::string, int64_t>& counts, const std::string& name) {
    const auto found = counts.find(name);
    return found == counts.end() ? int64_t{0} : found->second;
  };
  text.family("restarts_total", "counter", "Generations that followed a failure, by its cause.");
  std::map<std::string, int64_t> restarts = restarts_by_cause_;
  // All of them are there from the beginning: a rate needs a value to begin with.
  for (const std::string& cause : restart_causes()) restarts.try_emplace(cause, 0);
  for (const auto& [cause, count] : restarts) text.sample(count, label("cause", cause));
  text.counter("starts_total", number_of(events_by_name_, "start"), "Times that training began.");
  text.counter("fatal_failures_total", fatal_failures_, "Failures that ended a launch.");
  text.counter("hosts_lost_total", number_of(events_by_name_, "host_lost"),
               "Machines that a generation continued without.");
  text.counter("hosts_joined_total", number_of(events_by_name_, "host_joined"),
               "Machines that a generation took in.");
  text.counter("grad_spikes_total", number_of(events_by_name_, "spike"),
               "Gradient spikes that are over.");
  text.counter("grad_alarms_total", number_of(events_by_name_, "alarm"),
               "Times that the gradient norm, or the loss, looked like divergence.");
}

void RunState::add_checkpoints(PrometheusText& text, double now) const {
  const auto count = events_by_name_.find("checkpoint_commit");
  text.counter("checkpoints_total", count == events_by_name_.end() ? 0 : count->second,
               "Checkpoints that were committed.");
  text.counter("checkpoint_failures_total", checkpoint_failures_,
               "Checkpoints that could not be written.");
  text.gauge("last_checkpoint_step", checkpoint_step_, "The step of the newest checkpoint.");
  const double since = checkpoint_time_ > 0 ? checkpoint_time_ : began_;
  text.gauge("last_checkpoint_age_seconds", std::max(0.0, now - since),
             "Since the newest checkpoint; before the first one since this process began.");
}

}  // namespace skein
