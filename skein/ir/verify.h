// The written specification of a graph; checked after every pass.
//
//   1. a value is defined before it is used, and once; its name is unique
//   2. output types are what the op infers from its inputs
//   3. phases come in order: forward, backward, update
//   4. a value whose memory an op overwrote in place is not read afterwards under any name: the
//      input itself, its views, or what it is a view of; nor does that op read it as another input
//   5. inputs of i32 (tokens, the step) are not overwritten; parameters and optimizer state only by
//      the update phase
//   6. a transient value is consumed in the phase that produces it
//   7. asynchronous work (OpDef::ended_by) is ended once, and until then nobody reads or overwrites
//      its outputs, nor overwrites its inputs
//
// Offsets in memory are checked elsewhere: passes/memory/check_memory.h.
#pragma once

#include <string_view>

#include "skein/ir/graph.h"

namespace skein {

// Whether the consumers of transient values (the gradients of logits) already run in the phase that
// produces them. Between differentiation and hoisting they do not, and rule 6 is not checked.
enum class Transients { kInPlace, kToBeHoisted };

// Throws Error{kInternal}: "after <pass>: node 12 [linear] ...".
void verify(const Graph& graph, std::string_view after_pass,
            Transients transients = Transients::kInPlace);

}  // namespace skein
