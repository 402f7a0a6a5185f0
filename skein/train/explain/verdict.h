// What an answer of `skein why` means where numbers are not finite: the documents broke the step,
// or the weights were broken before it.
#pragma once

#include <string>

#include "skein/train/explain/explain_step.h"

namespace skein {

// One sentence or two; "" where nothing is to be said.
std::string verdict_of(const StepAnswer& answer);

}  // namespace skein
