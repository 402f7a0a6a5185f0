// Whether micro-batches in pairs (passes/overlap/pair_programs.h) would make a planned run faster.
#pragma once

#include <optional>
#include <string>

#include "skein/plan/plan.h"

namespace skein {

struct PairAdvice {
  double step_seconds = 0;   // with parallel.pairs = true
  int64_t device_bytes = 0;  // of the fullest device
};

// Nothing where they are on already, cannot be, would not fit, or make less than 1 % of difference.
// Cost  a second plan, where layers wait for other ranks
std::optional<PairAdvice> advise_pairs(const PlanRequest& request, const Plan& plan);

// "With parallel.pairs = true 683 ms a step instead of 836 ms, ..."
std::string pair_advice_text(const PairAdvice& advice, const Plan& plan);

}  // namespace skein
