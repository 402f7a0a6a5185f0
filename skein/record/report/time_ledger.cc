#include "skein/record/report/time_ledger.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "skein/record/files/event_fields.h"

namespace skein {
namespace {

// What no run lasts is an error in a file.
constexpr double kMostSeconds = 1e10;

int64_t to_micros(double seconds) {
  if (!(seconds > 0)) return 0;
  return std::llround(std::min(seconds, kMostSeconds) * 1e6);
}

int64_t millis_to_micros(float millis) { return to_micros(static_cast<double>(millis) / 1e3); }

// Events by which the time is divided. A failure after which training goes on is none: the next
// generation says when it was known.
bool divides(const std::string& name, const Json& event) {
  if (name == "failure") return bool_or(event, "fatal", false);
  return name == "start" || name == "generation" || name == "stop";
}

}  // namespace

const char* time_part_name(TimePart part) {
  constexpr const char* kNames[kNumTimeParts] = {
      "productive", "data_wait", "saving",    "replicating", "redone",
      "validating", "starting",  "detecting", "recovering",  "waiting"};
  return kNames[static_cast<size_t>(part)];
}

int64_t TimeLedger::total_micros() const {
  return std::accumulate(parts_.begin(), parts_.end(), int64_t{0});
}

double TimeLedger::goodput() const {
  const int64_t total = total_micros();
  return total > 0 ? static_cast<double>(micros(TimePart::kProductive)) / static_cast<double>(total)
                   : 0;
}

void TimeLedger::add_event(const Json& event) {
  const std::string name = text_or(event, "event", "");
  const bool matters = divides(name, event);
  if (!matters && name != "validation" && name != "evaluation") return;
  Moment moment;
  moment.wall = number_or(event, "time", 0);
  moment.clock = number_or(event, "clock", moment.wall);
  if (event.contains("clock")) {
    std::string boot = text_or(event, "boot", "");
    // Without the name of a boot, as where there is no /proc, only within a start it is surely one.
    if (boot.empty()) boot = fmt::format("?{}", starts_.size() + (name == "start" ? 1 : 0));
    moment.machine = text_or(event, "host", "?") + "/" + boot;
  }
  const std::optional<int64_t> at = place(moment, matters);
  if (!at) return;
  if (name == "start") {
    starts_.push_back({*at, moment});
    start_numbers_[integer_or(event, "number", std::ssize(starts_))] = starts_.size();
  } else if (matters && !starts_.empty()) {
    starts_.back().is_over = true;
  }
  const bool is_over = !starts_.empty() && starts_.back().is_over;
  pending_.push_back({.order = 2 * starts_.size() + (is_over ? 1 : 0),
                      .at = *at,
                      .machine = moment.machine,
                      .event = event});
}

void TimeLedger::add_step(const StepMetrics& metrics) { waiting_steps_.push_back(metrics); }

// A moment lies behind an earlier moment of the same machine by the difference of that machine's
// clock. The first moment of a machine is placed by wall clocks. If it does not matter, it is not
// placed: a wrong wall clock would move every later moment.
std::optional<int64_t> TimeLedger::place(const Moment& moment, bool matters) {
  const auto found = anchors_.find(moment.machine);
  if (found == anchors_.end() && !matters) return std::nullopt;
  int64_t at = newest_;
  if (found != anchors_.end() && moment.clock >= found->second.newest) {
    at = found->second.at + to_micros(moment.clock - found->second.clock);
  } else if (newest_wall_) {
    at = newest_ + to_micros(moment.wall - *newest_wall_);
  }
  if (found == anchors_.end() || moment.clock < found->second.newest || at < newest_) {
    at = std::max(at, newest_);
    anchors_[moment.machine] = {moment.clock, moment.clock, at};
  }
  anchors_[moment.machine].newest = moment.clock;
  newest_ = at;
  newest_wall_ = moment.wall;
  return at;
}

// How many starts there were when the step was done. Files of older versions say the time alone.
size_t TimeLedger::start_of(const StepMetrics& metrics) {
  if (metrics.start > 0) {
    const auto found = start_numbers_.find(metrics.start);
    return found == start_numbers_.end() ? starts_.size() + 1 : found->second;
  }
  while (step_start_ < starts_.size() && metrics.time > 0 &&
         starts_[step_start_].moment.wall <= metrics.time) {
    ++step_start_;
  }
  return step_start_;
}

int64_t TimeLedger::place_step(const StepMetrics& metrics, size_t start) const {
  if (start == 0) return to_micros(metrics.time);  // there are no events at all
  const LedgerStart& begin = starts_[start - 1];
  const double seconds =
      metrics.start > 0 ? metrics.clock - begin.moment.clock : metrics.time - begin.moment.wall;
  return begin.at + to_micros(seconds);
}

void TimeLedger::settle() {
  std::vector<StepMetrics> later;
  int64_t previous = 0;
  for (const StepMetrics& metrics : waiting_steps_) {
    const size_t start = start_of(metrics);
    if (start > starts_.size()) {
      later.push_back(metrics);
      continue;
    }
    // An old file's wall clock may have been set back; a step took its time all the same.
    int64_t at = place_step(metrics, start);
    if (metrics.start == 0) at = std::max(at, previous + millis_to_micros(metrics.step_ms));
    previous = at;
    pending_.push_back({.order = 2 * start,
                        .at = at,
                        .machine = start > 0 ? starts_[start - 1].moment.machine : "",
                        .is_step = true,
                        .metrics = metrics});
  }
  waiting_steps_ = std::move(later);
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const LedgerRecord& a, const LedgerRecord& b) {
                     return std::tie(a.order, a.at) < std::tie(b.order, b.at);
                   });
  for (LedgerRecord& record : pending_) account(record);
  pending_.clear();
}

// Where wall clocks would have one machine's record before what came before it, all of its records
// are as much later.
void TimeLedger::account(LedgerRecord& record) {
  const std::string name = record.is_step ? "" : text_or(record.event, "event", "");
  if (name == "validation" || name == "evaluation") {
    validated_ += to_micros(number_or(record.event, "seconds", 0));
    return;
  }
  int64_t& late = late_[record.machine];
  if (accounted_) late = std::max(late, *accounted_ - record.at);
  record.at += late;
  if (record.is_step) {
    stepped(record);
  } else if (name == "start") {
    launched(record);
  } else if (name == "generation") {
    generation(record);
  } else if (name == "stop") {
    ended(record, TimePart::kSaving);
    if (text_or(record.event, "reason", "") == "regroup") phase_ = Phase::kRecovering;
  } else if (name == "failure") {
    ended(record, TimePart::kDetecting);
  }
}

void TimeLedger::launched(const LedgerRecord& record) {
  const bool goes_on =
      phase_ == Phase::kRecovering || integer_or(record.event, "generation", 1) > 1;
  if (goes_on && accounted_) {
    charge(record.at, TimePart::kRecovering);
    phase_ = Phase::kRecovering;
  } else {
    const int64_t launch = record.at - to_micros(number_or(record.event, "launched_seconds", 0));
    if (!accounted_) accounted_ = launch;
    between_starts_ += std::max<int64_t>(launch - *accounted_, 0);
    charge(launch, TimePart::kWaiting);
    charge_at_most(to_micros(number_or(record.event, "waited_seconds", 0)), record.at,
                   TimePart::kWaiting);
    charge(record.at, TimePart::kStarting);
    phase_ = Phase::kStarting;
  }
  validated_ = 0;
  lose_steps_after(integer_or(record.event, "step", 0));
}

void TimeLedger::generation(const LedgerRecord& record) {
  const int64_t known = record.at - to_micros(number_or(record.event, "known_seconds", 0));
  validated_ -= charge_at_most(validated_, known, TimePart::kValidating);
  charge(known, phase_ == Phase::kRecovering ? TimePart::kRecovering : TimePart::kDetecting);
  charge_at_most(to_micros(number_or(record.event, "waited_seconds", 0)), record.at,
                 TimePart::kWaiting);
  charge(record.at, TimePart::kRecovering);
  phase_ = Phase::kRecovering;
}

void TimeLedger::stepped(const LedgerRecord& record) {
  const StepMetrics& metrics = record.metrics;
  const int64_t length = millis_to_micros(metrics.step_ms);
  if (!accounted_) accounted_ = record.at - length;
  const int64_t end = std::max(record.at, *accounted_);
  charge(end - std::min(length, end - *accounted_), part_of_phase(TimePart::kValidating));
  phase_ = Phase::kTraining;
  validated_ = 0;
  if (!kept_.empty() && kept_.back().step >= metrics.step) lose_steps_after(metrics.step - 1);
  const int64_t all = end - *accounted_;
  StepParts kept;
  kept.step = metrics.step;
  const auto share = [&](float millis, int64_t most) {
    return static_cast<int32_t>(std::min({millis_to_micros(millis), most, int64_t{INT32_MAX}}));
  };
  kept.data_wait = share(metrics.data_wait_ms, all);
  kept.saving = share(metrics.checkpoint_stall_ms, all - kept.data_wait);
  kept.replicating = share(metrics.replication_stall_ms, all - kept.data_wait - kept.saving);
  kept.productive = all - kept.data_wait - kept.saving - kept.replicating;
  of(TimePart::kProductive) += kept.productive;
  of(TimePart::kDataWait) += kept.data_wait;
  of(TimePart::kSaving) += kept.saving;
  of(TimePart::kReplicating) += kept.replicating;
  kept_.push_back(kept);
  accounted_ = end;
}

void TimeLedger::ended(const LedgerRecord& record, TimePart while_training) {
  if (!accounted_) accounted_ = record.at;
  validated_ -= charge_at_most(validated_, record.at, TimePart::kValidating);
  charge(record.at, part_of_phase(while_training));
  phase_ = Phase::kOff;
}

void TimeLedger::lose_steps_after(int64_t step) {
  while (!kept_.empty() && kept_.back().step > step) {
    const StepParts& lost = kept_.back();
    of(TimePart::kProductive) -= lost.productive;
    of(TimePart::kDataWait) -= lost.data_wait;
    of(TimePart::kSaving) -= lost.saving;
    of(TimePart::kReplicating) -= lost.replicating;
    of(TimePart::kRedone) += lost.productive + lost.data_wait + lost.saving + lost.replicating;
    kept_.pop_back();
  }
}

void TimeLedger::charge(int64_t until, TimePart part) {
  if (!accounted_) accounted_ = until;
  charge_at_most(until - *accounted_, until, part);
}

// Returns how much it was.
int64_t TimeLedger::charge_at_most(int64_t micros, int64_t until, TimePart part) {
  if (!accounted_) accounted_ = until;
  const int64_t charged = std::max<int64_t>(std::min(micros, until - *accounted_), 0);
  of(part) += charged;
  *accounted_ += charged;
  return charged;
}

TimePart TimeLedger::part_of_phase(TimePart while_training) const {
  switch (phase_) {
    case Phase::kOff:
      return TimePart::kWaiting;
    case Phase::kStarting:
      return TimePart::kStarting;
    case Phase::kTraining:
      return while_training;
    case Phase::kRecovering:
      return TimePart::kRecovering;
  }
  return TimePart::kWaiting;
}

}  // namespace skein
