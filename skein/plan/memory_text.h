// Describes for people what a rank holds and whether it fits; `skein plan` and a run that is
// refused print the same table.
#pragma once

#include <string>

#include "skein/plan/memory_advice.h"
#include "skein/plan/plan.h"

namespace skein {

// The table of the largest stage.
std::string memory_table(const Plan& plan);

// The table, and a line for each memory that says whether the run fits.
std::string memory_text(const Plan& plan);

// For a plan that does not fit, in one line: what is too large by how much, and what would make it
// fit.
std::string memory_refusal(const Plan& plan, const MemoryAdvice& advice);

}  // namespace skein
