// Instructions of a program, in words, for errors that came from one of them.
#pragma once

#include <cstddef>
#include <string>

#include "skein/ir/program.h"

namespace skein {

// "[linear] bf16[4096, 512] bf16[768, 512] (layer 3)": op, inputs, scope.
std::string describe(const Instruction& instruction);
// "in ops 0 to 31 of program 'forward', [embedding] ... to [linear] ...". `last` is one of them.
std::string describe_ops(const Program& program, size_t first, size_t last);

}  // namespace skein
