// Zeros: in place, to restart sums that were consumed; or a new value, for sums that live only
// while they are accumulated.
//
// Formula    fill_zero: x_i' = 0, padding included; zeros: y = 0
// Shapes     x_i any shape and dtype, packed
// Backward   none
// Cost       writes each once
// Placement  any; each keeps its own
#pragma once

#include <string>
#include <vector>

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kFillZero;  // (x0, x1, ...) -> (x0', x1', ...), in place

// The outputs are named after the inputs.
std::vector<ValueId> fill_zero(Graph& graph, const std::vector<ValueId>& values);

extern const OpDef kZeros;  // () {dtype, shape, placements} -> y

ValueId zeros(Graph& graph, const TensorType& type, const std::string& name);

}  // namespace skein
