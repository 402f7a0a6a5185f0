// Makes tensors zero in place: sums that were taken away, to start again.
//
// Formula    x_i' = 0, padding included
// Shapes     x_i any shape and dtype, packed
// Backward   none
// Cost       writes each once
// Placement  any; each keeps its own
#pragma once

#include <vector>

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kFillZero;  // (x0, x1, ...) -> (x0', x1', ...), in place

// The outputs are named after the inputs.
std::vector<ValueId> fill_zero(Graph& graph, const std::vector<ValueId>& values);

}  // namespace skein
