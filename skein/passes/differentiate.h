// Reverse-mode differentiation: appends the backward phase.
//
// For every parameter that the loss depends on, the graph gains an input `grad.<parameter>` (fp32,
// role gradient), to which backward adds the sum over the micro-batch's tokens; a parameter that
// several scopes use (tied embeddings) has one for each. A sum is Partial over each axis that
// splits the rows it adds up. The gradients of a value with several uses are added in the order of
// the uses, last first. Where a gradient arrives Partial for a value that is not, a redistribution
// reduces it.
//
// Consumers of transient values are still in the backward phase: hoist_transient, the next pass,
// moves them, and only then does rule 6 of verify hold.
//
// Errors  Error{kInvalid} where an op on the way has no derivative
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void differentiate(Graph& graph, ValueId loss);

}  // namespace skein
