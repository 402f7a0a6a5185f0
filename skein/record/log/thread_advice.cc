#include "skein/record/log/thread_advice.h"

#include <fmt/format.h>

#include "skein/base/text/units.h"

namespace skein {

std::string thread_advice(double step_flops, int64_t num_calls, double flops_per_s, int threads) {
  constexpr double kWorthSeconds = 1e-4;  // a call
  if (threads <= 1 || num_calls <= 0 || flops_per_s <= 0) return "";
  const double together = step_flops / flops_per_s, alone = together * threads;
  if (alone - together >= kWorthSeconds * static_cast<double>(num_calls)) return "";
  return fmt::format(
      "a step is {} of work for one thread, in {} calls: {} threads save less of it than they wait "
      "for each other where other work shares the cores; device.threads = 1 may be faster, and "
      "gives the same losses",
      format_short_duration(alone), num_calls, threads);
}

}  // namespace skein
