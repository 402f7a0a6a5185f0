// Keeps activations in host memory until backward: one copy there and one back. One op begins a
// copy and another ends it, so that the device computes in between.
//
// Formula       y = x
// Shapes        x, y: any dtype and shape
// Memory        the output of stash is in host memory that the device addresses
//               (passes/memory/plan_memory.h); everything else on the device. What stash reads must
//               not be written before its stash_end, what fetch writes not read before its
//               fetch_end
// Backward      none: passes/offload_activations.h adds these ops after differentiation
// Cost          memory only, at the rate of the link to the host (`op_factors` of docs/hardware.md)
// Placement     any; that of x
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kStash;     // (x) -> y in host memory; begins the copy
extern const OpDef kStashEnd;  // (x) -> (); y is complete
extern const OpDef kFetch;     // (y) -> x on the device again; begins the copy
extern const OpDef kFetchEnd;  // (x) -> x, complete, in the same memory

// Both ends of a copy name the same `channel`, which no other copy has: forward and backward of two
// micro-batches may run in one program.
ValueId stash(Graph& graph, ValueId x, int64_t channel, const std::string& name);
void end_stash(Graph& graph, ValueId x, int64_t channel);
ValueId fetch(Graph& graph, ValueId stashed, int64_t channel, const std::string& name);
ValueId end_fetch(Graph& graph, ValueId fetched, int64_t channel, const std::string& name);

}  // namespace skein
