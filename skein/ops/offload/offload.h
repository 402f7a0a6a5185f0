// Activations that wait for backward in host memory: one copy there, one back, each of them begun
// by one op and ended by another, so that the device computes in between.
//
// Formula       y = x
// Shapes        x, y: any dtype and shape
// Memory        the output of stash lies in host memory that the device addresses
//               (passes/plan_memory.h); all else on the device. What stash reads must not be
//               written before its stash_end, what fetch writes not read before its fetch_end
// Backward      none: passes/offload.h puts them in after differentiation
// Cost          memory only, at the rate of the link to the host (`op_factors` of docs/hardware.md)
// Placement     that of x, whatever it is
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kStash;     // (x) -> y in host memory, begun
extern const OpDef kStashEnd;  // (x) -> (): y is whole
extern const OpDef kFetch;     // (y) -> x on the device again, begun
extern const OpDef kFetchEnd;  // (x) -> x, whole, in the same memory

// The two ends of a copy name the same `channel`; within a program a channel is one copy. (In
// another program it may be another: the way back, say.)
ValueId stash(Graph& graph, ValueId x, int64_t channel, const std::string& name);
void end_stash(Graph& graph, ValueId x, int64_t channel);
ValueId fetch(Graph& graph, ValueId stashed, int64_t channel, const std::string& name);
ValueId end_fetch(Graph& graph, ValueId fetched, int64_t channel, const std::string& name);

}  // namespace skein
