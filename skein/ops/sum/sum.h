// The running loss: adds a vector of terms to a sum.
//
// Formula       sum' = sum + (terms[0] + terms[1] + ... )
// Derivative    of the loss itself: each term, and the sum so far, has the unit gradient
// Shapes        sum, sum' [1] f64; terms [C] f32
// Accumulation  f64; the terms by a binary tree: halves of the next power of two, recursively
// Backward      saves nothing
// Cost          C flops
// Placement     P S0 -> P (terms of a split batch), P P -> P
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kAddToSum;  // (sum, terms) -> sum', in place

ValueId add_to_sum(Graph& graph, ValueId sum, ValueId terms);

}  // namespace skein
