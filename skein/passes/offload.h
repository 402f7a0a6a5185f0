// Keeps large activations in host memory from forward to backward (ops/offload).
//
// What     every storage of at least `least_bytes` on a rank that forward writes and backward
//          reads, but for what backward reads within its first `num_soon` nodes: it would be back
//          at once (not where backward waits for another stage). A storage goes as a whole: so q, k
//          and v, which share one, go together
// Where    stash right behind the last forward node that touches the storage, fetch_end right
//          before the first backward node that reads the value: on the device it lives in the
//          workspace, twice, for as long as it is used or copied
// Ahead    the copies of two such places at most are under way beside the computation: a stash ends
//          where the second one behind it begins, and a fetch begins where the second one before it
//          is used. So the device holds what two places more need; backward's first fetches begin
//          with it
// Numbers  the same bits come back: losses and gradients do not change by a bit
#pragma once

#include <cstdint>

#include "skein/ir/graph.h"

namespace skein {

struct OffloadOptions {
  int64_t least_bytes = int64_t{1} << 20;  // below, starting a copy costs more than the memory
  int num_soon = 8;                        // of the backward nodes
};

// After simplify, which drops what nothing reads, and before overlap.
void offload(Graph& graph, const OffloadOptions& options = {});

}  // namespace skein
