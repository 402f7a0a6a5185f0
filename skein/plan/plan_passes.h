// What the passes make of a model, for whoever writes a pass or doubts one: `skein plan --passes`,
// `skein plan --print-after PASS`.
//
// Errors  Error{kUsage} for a pass that there is not, or that is off for this configuration
#pragma once

#include <string>

#include "skein/plan/plan.h"

namespace skein {

// Nothing is measured.
PlanRequest passes_request(const Config& config, int64_t ranks);

// A line a pass, in order, and which are off.
std::string passes_text(const PlanRequest& request, int64_t rank);

// The graph of training, of the stage of `rank`, as text (ir/text.h); behind plan_memory the
// programs that the rank runs, with addresses.
std::string text_after(const PlanRequest& request, int64_t rank, const std::string& pass);

}  // namespace skein
