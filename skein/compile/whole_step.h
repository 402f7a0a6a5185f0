// A training step as one program, for devices that compile programs: the compiler sees forward,
// backward and update at once, and the device is asked once a step.
//
// Where   one micro-batch a step and no pipeline; elsewhere forward and backward run several times
// Memory  what only those programs give each other, such as gradients, is the compiler's own: the
//         host cannot read it
#pragma once

#include <string_view>

#include "skein/compile/step_programs.h"

namespace skein {

inline constexpr std::string_view kStepProgram = "step";

bool is_one_program(const StepSpec& spec);

// Puts "step" in the place of the programs of a training step, where it is one. Evaluation stays.
void join_step(ProgramSet& programs, const StepSpec& spec);

}  // namespace skein
