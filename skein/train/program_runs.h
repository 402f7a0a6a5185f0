// How often a rank runs each of its programs in a training step: what a plan multiplies by.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "skein/train/step_programs.h"

namespace skein {

// By program name; those that a step does not run (evaluation) are absent.
using ProgramRuns = std::map<std::string, int64_t, std::less<>>;

// As StepRunner runs them, for the stage of the spec's rank. `programs`: of that stage.
ProgramRuns program_runs(const StepSpec& spec, const ProgramSet& programs);

}  // namespace skein
