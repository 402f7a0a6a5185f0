// What a collective asks of NCCL, posted to a queue: which bytes go where, and the canonical sum.
#pragma once

#include "skein/comm/communicator.h"
#include "skein/comm/nccl/nccl_queue.h"
#include "skein/comm/tree_sum.h"

namespace skein {

// A rank's place in its group of two or more, and how the terms of the group's ranks are added.
struct PlaceInGroup {
  int rank = 0;
  int size = 2;
  TreePairs pairs;
};

// Throws NcclRefusal.
void post_calls(const NcclPost& to, const Collective& collective, const PlaceInGroup& place,
                Sums sums);

// Within a group of one rank: input to output, on `stream`.
void post_copies(const Collective& collective, cudaStream_t stream);

}  // namespace skein
