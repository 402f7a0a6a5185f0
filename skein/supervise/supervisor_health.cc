// Whether this host is fit to train, and which ranks are slow.
#include <algorithm>
#include <utility>

#include "skein/base/error.h"
#include "skein/supervise/supervisor.h"

namespace skein {

void Supervisor::host_checked(int64_t check, const std::string& problem, Millis now) {
  if (!check_ends_at_ || check != check_) return;  // too late
  note_health(problem, now);
  advance(now);
}

// The generation before which this host should have checked itself by now. While its workers end
// the check runs beside that.
int64_t Supervisor::check_due() const {
  if (kill_at_ || settle_at_) return record_.joined + 1;
  if (runs_) return 0;
  const bool failed_here = is_cause(record_.ending) && !is_fatal(record_.ending);
  return std::max(failed_here ? record_.ended + 1 : 0, membership_.check_due());
}

void Supervisor::watch_health(Millis now) {
  if (exit_ || record_.leaving || is_broken_) return;
  if (check_ends_at_) {
    if (now < *check_ends_at_) return;
    act(Action::Kind::kEndCheck);
    note_health(fmt::format("its check did not end within {} s", options_.check / 1000), now);
    return;
  }
  const int64_t due = check_due();
  const bool is_sick = !record_.sick.empty();
  if (due == 0 || (is_sick ? now < recheck_at_ : due <= record_.checked)) return;
  checks_for_ = due;
  check_ends_at_ = now + options_.check;
  act(Action::Kind::kCheckHost).check = ++check_;
}

void Supervisor::note_health(const std::string& problem, Millis now) {
  check_ends_at_.reset();
  record_.checked = checks_for_;
  changed_ = true;
  const bool was_sick = !std::exchange(record_.sick, problem).empty();
  if (problem.empty()) {
    if (was_sick) say("this machine passes its check again");
    return;
  }
  // A check that passes every other time is not forgiven each time it does.
  const auto forgotten = static_cast<int>(
      std::min<Millis>(times_sick_, (now - sick_since_) / options_.forget_sickness));
  times_sick_ -= forgotten;
  sick_since_ = now;
  const Millis wait =
      std::min(options_.max_recheck, options_.first_recheck << std::min(times_sick_, 20));
  ++times_sick_;
  recheck_at_ = now + wait;
  say(fmt::format(
      "this machine fails its check and is left out: {}; it checks itself again in {} s", problem,
      wait / 1000));
}

void Supervisor::note_wrong_bits() {
  const bool soon = times_wrong_ > 0 && record_.step - wrong_step_ < kSoonWrongAgain;
  is_broken_ = ++times_wrong_ >= kTooOftenWrong || soon;
  wrong_step_ = record_.step;
  if (is_broken_) {
    record_.sick = message_;
    check_ends_at_.reset();  // whatever it will say
  }
  Action& action = act(Action::Kind::kWrongBits);
  action.persistent = is_broken_;
  action.text = message_;
}

void Supervisor::worked(int64_t generation, int index, int64_t step, int64_t work_us, Millis now) {
  if (!runs_ || generation != record_.joined) return;
  if (meter_.add(index, step, work_us, now)) record_.work_us = meter_.us_per_step();
}

void Supervisor::name_stragglers(Millis now) {
  if (!is_settled() || !membership_.view().is_direct || !membership_.is_my_turn()) return;
  for (const Straggler& straggler : stragglers_.find(membership_.view(), now)) {
    Action& action = act(Action::Kind::kStraggler);
    action.straggler = straggler;
    action.text = straggler_text(straggler);
  }
}

}  // namespace skein
