// ZeRO over the data axis, beyond optimizer state (stage 1, optim/update.h): what is whole on every
// rank only while it is needed.
//
// shard_weights   (stage 3) parameters become Flat; before a scope runs, forward or backward, its
//                 parameters are gathered together into memory that is free again behind it
// shard_gradients (stage 2) a gradient sum becomes Flat; the sum over a micro-batch starts at zero
//                 in memory of its own, and is reduced to the rank's range as soon as its scope is
//                 done, together with the others of the scope. Right only where a rank runs one
//                 micro-batch a step for one virtual rank: else the sum over micro-batches comes
//                 first, and needs the whole (docs/parallelism.md)
// Both            after differentiate and recompute, before take_stage; the bits do not change
// Source          Rajbhandari et al., arXiv:1910.02054
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void shard_weights(Graph& graph);
void shard_gradients(Graph& graph);

}  // namespace skein
