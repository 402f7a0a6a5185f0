#include "skein/supervise/host_health.h"

#include <algorithm>
#include <utility>

#include "skein/base/error.h"

namespace skein {

bool HostHealth::checked(int64_t check, const std::string& problem, Millis now) {
  if (!check_ends_at_ || check != check_) return false;
  note(problem, now);
  return true;
}

void HostHealth::watch(int64_t due, Millis now) {
  if (is_broken_) return;
  if (check_ends_at_) {
    if (now < *check_ends_at_) return;
    actions_.add(Action::Kind::kEndCheck);
    note(fmt::format("its check did not end within {} s", options_.check / 1000), now);
    return;
  }
  const HostRecord& record = link_.record();
  if (due == 0 || (record.sick.empty() ? due <= record.checked : now < recheck_at_)) return;
  checks_for_ = due;
  check_ends_at_ = now + options_.check;
  actions_.add(Action::Kind::kCheckHost).check = ++check_;
}

void HostHealth::note(const std::string& problem, Millis now) {
  check_ends_at_.reset();
  link_.record().checked = checks_for_;
  link_.publish();
  const bool was_sick = !std::exchange(link_.record().sick, problem).empty();
  if (problem.empty()) {
    if (was_sick) actions_.say("this machine passes its check again");
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
  actions_.say(fmt::format(
      "this machine fails its check and is left out: {}; it checks itself again in {} s", problem,
      wait / 1000));
}

void HostHealth::note_wrong_bits(const std::string& message) {
  HostRecord& record = link_.record();
  const bool soon = times_wrong_ > 0 && record.step - wrong_step_ < kSoonWrongAgain;
  is_broken_ = ++times_wrong_ >= kTooOftenWrong || soon;
  wrong_step_ = record.step;
  if (is_broken_) {
    record.sick = message;
    check_ends_at_.reset();  // whatever it will say
  }
  Action& action = actions_.add(Action::Kind::kWrongBits);
  action.persistent = is_broken_;
  action.text = message;
}

}  // namespace skein
