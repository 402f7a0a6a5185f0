// Reverse-mode differentiation: appends the backward phase.
//
// For every parameter that reaches the loss, the graph gains an input `grad.<parameter>` (fp32,
// role gradient), to which backward adds the sum over the micro-batch's tokens. A gradient is
// Partial over each axis that shards the batch. Values with several uses have their gradients added
// in the order of the uses, last first.
//
// Gradients of transient values still stand in the backward phase: hoist_transient comes next, and
// verifies both.
//
// Errors  Error{kInvalid} where an op on the way has no derivative
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void differentiate(Graph& graph, ValueId loss);

}  // namespace skein
