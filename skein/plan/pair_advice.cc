#include "skein/plan/pair_advice.h"

#include <fmt/format.h>

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {

std::optional<PairAdvice> advise_pairs(const PlanRequest& request, const Plan& plan) {
  constexpr double kWorthIt = 0.99;  // of the time of a step
  const ParallelConfig& parallel = request.config.parallel;
  if (parallel.pairs || !parallel.overlap || parallel.pipeline > 1) return std::nullopt;
  PlanRequest in_pairs = request;
  in_pairs.config.parallel.pairs = true;
  if (!idle_pairs(in_pairs.config, plan.layout).empty()) return std::nullopt;
  Plan paired;
  try {
    paired = make_plan(in_pairs);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
    return std::nullopt;
  }
  const bool is_worth_it = paired.step.step_seconds < kWorthIt * plan.step.step_seconds;
  if (!is_worth_it || !all_fit(paired.memory)) return std::nullopt;
  return PairAdvice{paired.step.step_seconds, paired.fullest().device_bytes()};
}

std::string pair_advice_text(const PairAdvice& advice, const Plan& plan) {
  return fmt::format(
      "\nWith parallel.pairs = true {} a step instead of {}, and {} on a device instead of {}; the "
      "same losses\n",
      format_short_duration(advice.step_seconds), format_short_duration(plan.step.step_seconds),
      format_bytes(advice.device_bytes), format_bytes(plan.fullest().device_bytes()));
}

}  // namespace skein
