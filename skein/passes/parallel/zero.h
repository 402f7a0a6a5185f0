// ZeRO over data and context ranks, stages 3 and 2 (stage 1, the optimizer state, is
// optim/update.h): weights or gradients are whole on a rank only while they are needed.
//
// shard_weights   (stage 3) parameters become Flat. Before a scope runs, forward or backward, its
//                 parameters are gathered together into memory that is free again after the scope
// shard_gradients (stage 2) a gradient sum becomes Flat. The sum over a micro-batch starts at zero
//                 in temporary memory, and is reduced to the rank's range as soon as its scope is
//                 done, together with the others of the scope. Correct only where a rank runs one
//                 micro-batch a step for one virtual rank: otherwise micro-batches must be added
//                 first, which needs the whole sum (docs/parallelism.md)
// Both            run after differentiate and recompute, before take_stage; the bits do not change
// Source          Rajbhandari et al., arXiv:1910.02054
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void shard_weights(Graph& graph);
void shard_gradients(Graph& graph);

}  // namespace skein
