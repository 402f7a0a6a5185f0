// The written specification of a graph; run after every pass.
//
//   1. a value is defined before it is used, and once; its name is unique
//   2. output types are what the op infers from its inputs
//   3. phases come in order: forward, backward, update
//   4. a value whose memory an op overwrote in place is not read afterwards, under whatever name:
//      the input itself, a view of it, what it is a view of; nor does that op read it elsewhere
//   5. inputs of i32 (tokens, the step) are not overwritten; parameters and optimizer state only by
//      the update phase
//   6. a transient value is consumed in the phase that produces it
//   7. work that one op begins and another ends (OpDef::ended_by) is ended once, and until then
//   nobody
//      reads or overwrites what it writes, nor overwrites what it reads
//
// Offsets in memory are another matter: passes/check_memory.h.
#pragma once

#include <string_view>

#include "skein/ir/graph.h"

namespace skein {

// Whether the consumers of transient values, gradients of logits, stand where they are made
// already. Between differentiation and hoisting they do not: rule 6 does not hold there.
enum class Transients { kInPlace, kToBeHoisted };

// Throws Error{kInternal}: "after <pass>: node 12 [linear] …".
void verify(const Graph& graph, std::string_view after_pass,
            Transients transients = Transients::kInPlace);

}  // namespace skein
