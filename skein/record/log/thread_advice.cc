#include "skein/record/log/thread_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/base/text/units.h"

namespace skein {
namespace {

bool can_tell(const StepWork& work) {
  return work.threads > 1 && work.num_calls > 0 && work.flops_per_s > 0;
}

}  // namespace

std::string thread_advice(const StepWork& work) {
  constexpr double kWorthSeconds = 1e-4;  // a call
  if (!can_tell(work)) return "";
  const double alone = work.one_thread_seconds(), together = alone / work.threads;
  if (alone - together >= kWorthSeconds * static_cast<double>(work.num_calls)) return "";
  return fmt::format(
      "a step is {} of work for one thread, in {} calls: {} threads save less of it than they wait "
      "for each other where other work shares the cores; device.threads = 1 may be faster, and "
      "gives the same losses",
      format_short_duration(alone), work.num_calls, work.threads);
}

std::string SlowThreads::after_step(const StepWork& work, double seconds) {
  constexpr size_t kFirst = 1, kSteps = 20;  // the first step also touches its memory
  constexpr double kTimesTheWork = 4;      // small steps reach a quarter of what large products do
  constexpr double kWaitedSeconds = 2e-4;  // a call; threads with cores of their own: 0.02e-3
  if (is_done_ || !can_tell(work)) return "";
  seconds_.push_back(seconds);
  if (seconds_.size() < kFirst + kSteps) return "";
  is_done_ = true;
  const auto middle = seconds_.begin() + kFirst + kSteps / 2;
  std::nth_element(seconds_.begin() + kFirst, middle, seconds_.end());
  const double alone = work.one_thread_seconds(), excess = *middle - alone;
  if (*middle < kTimesTheWork * alone ||
      excess < kWaitedSeconds * static_cast<double>(work.num_calls)) {
    return "";
  }
  return fmt::format(
      "a step takes {}, and its work takes one thread about {}: its {} threads wait for cores that "
      "other work has. To be faster, stop, and continue with --set device.threads=1, which gives "
      "the same losses",
      format_short_duration(*middle), format_short_duration(alone), work.threads);
}

}  // namespace skein
