// Shows what the passes make of a model, to those who write or debug a pass: `skein plan --passes`,
// `skein plan --print-after PASS`, `skein plan --print-stablehlo [PROGRAM]`.
//
// Errors  Error{kUsage} for a pass that does not exist, or that is off for this configuration, and
//         for a program that it does not have
#pragma once

#include <string>

#include "skein/plan/plan.h"

namespace skein {

// A request for which nothing is measured.
PlanRequest passes_request(const Config& config, int64_t ranks);

// One line a pass, in order; says which are off.
std::string passes_text(const PlanRequest& request, int64_t rank);

// The training graph of the stage of `rank` after the pass, as text (ir/graph_text.h); after
// plan_memory the programs that the rank runs, with addresses.
std::string text_after(const PlanRequest& request, int64_t rank, const std::string& pass);

// The program as a StableHLO module that all ranks of the stage of `rank` run; "": every program.
// `is_narrow`: as stablehlo::ModuleRequest has it.
std::string stablehlo_text(const PlanRequest& request, int64_t rank, const std::string& program,
                           bool is_narrow);

}  // namespace skein
