// Activations that wait for backward in host memory: one copy there, one back.
//
// Formula       y = x
// Shapes        x, y: any dtype and shape
// Memory        the output of stash lies in host memory that the device addresses
//               (passes/plan_memory.h); all else on the device
// Backward      none: passes/offload.h puts both in after differentiation
// Cost          memory only, at the rate of the link to the host (`op_factors` of docs/hardware.md)
// Placement     that of x, whatever it is
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kStash;  // (x) -> y in host memory
extern const OpDef kFetch;  // (y) -> x on the device again

ValueId stash(Graph& graph, ValueId x, const std::string& name);
ValueId fetch(Graph& graph, ValueId stashed, const std::string& name);

}  // namespace skein
