// Row slices of a value, and back: both are views and move no element.
//
// Formula     split:  y_i = rows sizes[0] + ... + sizes[i-1] on of x, sizes[i] rows
//             concat: y = the rows of x_1, x_2, ... one after the other
// Derivative  each is the other's
// Shapes      x [T, D] or [T], any dtype; the sizes are positive and sum to T
// Cost        none; concat makes its inputs be produced side by side
// Placement   S0, S1 and P -> the same. If the value is split by rows, every rank slices its own
//             rows, so the axis must divide each size; concat is the exact inverse
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kSplit;   // (x) {sizes} -> (y1, y2, ...)
extern const OpDef kConcat;  // (x1, x2, ...) -> y

// Names the slices name.0, name.1, ...
std::vector<ValueId> split(Graph& graph, ValueId x, const std::vector<int64_t>& sizes,
                           const std::string& name);
ValueId concat(Graph& graph, const std::vector<ValueId>& parts, const std::string& name);

}  // namespace skein
