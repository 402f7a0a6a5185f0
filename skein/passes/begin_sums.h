// Has the first micro-batch of a step store gradient sums, where others add to them.
//
// The first product of a micro-batch that adds to a sum gets {from_zero} (ops/linear/linear.h):
// plan_memory makes programs for the first micro-batch that obey it, and for the others that add. A
// sum that begins so need not be zero between steps: the optimizer's op keeps it
// ({keeps_gradient}), fill_zero passes it over. What other ops add to (embeddings, norms, biases)
// still begins at zero.
//
// Numbers  the same bits, but for the sign of zeros
// Saves    reading and clearing 4 bytes a parameter, once a step
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// Must run after append_update and simplify, and before overlap_layers.
void begin_sums(Graph& graph);

}  // namespace skein
