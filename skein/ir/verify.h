// The written specification of a graph; run after every pass.
//
//   1. a value is defined before it is used, and once; its name is unique
//   2. output types are what the op infers from its inputs
//   3. phases come in order: forward, backward, update
//   4. a value that an op overwrote in place is not read afterwards
//   5. inputs of i32 (tokens, the step) are not overwritten; parameters and optimizer state only by
//      the update phase
//   6. a transient value is consumed in the phase that produces it
#pragma once

#include <string_view>

#include "skein/ir/graph.h"

namespace skein {

// Throws Error{kInternal}: "after <pass>: node 12 [linear] …".
void verify(const Graph& graph, std::string_view after_pass);

}  // namespace skein
