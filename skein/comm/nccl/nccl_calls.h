// What a collective asks of NCCL, posted to a queue: which bytes go where, and the canonical sum.
#pragma once

#include "skein/comm/communicator.h"
#include "skein/comm/nccl/nccl_queue.h"

namespace skein {

// `rank` of the group's `size`, two or more. Throws NcclRefusal.
void post_calls(const NcclPost& to, const Collective& collective, int rank, int size, Sums sums);

// Within a group of one rank: input to output, on `stream`.
void post_copies(const Collective& collective, cudaStream_t stream);

}  // namespace skein
