// Adds a bias to the rows of a product whose terms are spread over several ranks. There linear
// cannot add it, since every rank would.
//
// Formula       y[t,o] = x[t,o] + b[o]
// Derivative    dx = dy;  db[o] += sum over tokens of dy[t,o] (linear_db)
// Shapes        x, y [T, D] f32 or bf16; b [D] f32 or bf16; y in the memory of x
// Accumulation  fp32, rounded once
// Backward      saves nothing
// Cost          1 flop an element; memory-bound
// Placement     tokens S0, features S1 with those of b; b Replicated over tokens, db Partial
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kAddBias;  // (x, b) -> y

ValueId add_bias(Graph& graph, ValueId x, ValueId b, const std::string& name);

}  // namespace skein
