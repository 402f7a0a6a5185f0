// The text form of a graph: passes are tested with it, and people read it.
//
//   skein graph
//   mesh pp=1 dp=2 cp=1 tp=1
//   input x : f32[16, 4]{dp:S0}
//   parameter w : f32[8, 4]
//   forward
//     y = linear(x, w) {bias=false, f32_output=false, parts=1} : f32[16, 8]{dp:S0} @layers.0
//   output y
//
// An absent input is `_`. A transient output has `!` after its type. After the scope, `#1` is the
// pipeline's chunk where it is not 0, and `last` stands for last_only. Parsing and printing gives
// the same text again.
#pragma once

#include <string>
#include <string_view>

#include "skein/ir/graph.h"

namespace skein {

std::string to_text(const Graph& graph);

// Throws Error{kInvalid, "line 7: ..."} for text that is not a graph, names an op that `ops` does
// not have, or gives a type that the op does not infer.
Graph parse_graph(std::string_view text, const OpTable& ops);

}  // namespace skein
