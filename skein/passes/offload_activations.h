// Keeps large activations in host memory from forward to backward (ops/offload).
//
// What     every storage of at least `least_bytes` on a rank that forward writes and backward
//          reads. What backward reads within its first `num_soon` nodes stays, since it would have
//          to come back at once (unless backward waits for another stage first). A storage moves as
//          a whole: q, k and v, which share one, move together
// Where    stash right after the last forward node that uses the storage, fetch_end right before
//          the first backward node that reads the value. On the device the value lives in the
//          workspace, once in forward and once in backward, while it is used or copied
// Ahead    copies of at most two such places overlap with computation: a stash ends where the
//          second place after it begins, and a fetch begins where the second place before it is
//          used. So the device holds two places more than it uses; the first fetches begin with
//          backward
// Numbers  the same bits come back: losses and gradients do not change by a bit
#pragma once

#include <cstdint>

#include "skein/ir/graph.h"

namespace skein {

struct OffloadOptions {
  int64_t least_bytes = int64_t{1} << 20;  // below this, starting a copy costs more than the memory
  int num_soon = 8;                        // counted in backward nodes
};

// Must run after simplify, which drops what nothing reads, and before overlap.
void offload(Graph& graph, const OffloadOptions& options = {});

}  // namespace skein
