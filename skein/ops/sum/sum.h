// The running loss: adds a vector of terms to a sum.
//
// Formula       sum' = sum + terms[0] + terms[1] + ...
// Derivative    of the loss only: each term, and the running sum, has the unit gradient
// Shapes        sum, sum' f64[exact_sum::kBins], whose total is the loss
//               (skein/base/numbers/exact_sum.h); terms f32[C]
// Accumulation  exact: the same bits in any order and on any number of ranks
// Backward      saves nothing
// Cost          about 10 ns a term
// Placement     P S0 -> P (terms of a split batch), P P -> P, R R -> R
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kAddToSum;  // (sum, terms) -> sum', in place

ValueId add_to_sum(Graph& graph, ValueId sum, ValueId terms);

}  // namespace skein
