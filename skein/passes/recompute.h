// Trades arithmetic for memory: backward runs forward ops again instead of keeping their results.
//
//   none       everything that backward reads is kept
//   selective  outputs of ops with a `rematerialize` rule (norms, SwiGLU) are computed again
//   full       of each layer (scope "layers.<i>") only the values that other scopes read are kept;
//              the rest of the layer is computed again when its backward begins
//
// The same kernels run on the same bits, so losses and gradients do not change by a bit.
#pragma once

#include <string_view>

#include "skein/ir/graph.h"

namespace skein {

enum class RecomputePolicy { kNone, kSelective, kFull };
RecomputePolicy parse_recompute_policy(std::string_view name);  // throws Error{kUsage}

void recompute(Graph& graph, RecomputePolicy policy);

}  // namespace skein
