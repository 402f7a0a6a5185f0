// Passes as data: a list of transformations of a graph, in order. The graph is verified after each
// (ir/verify.h), and can be printed: `skein plan --print-after PASS`.
//
// Errors  Error{kInternal} naming the pass that broke a rule of the graph
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "skein/ir/graph.h"
#include "skein/ir/verify.h"

namespace skein {

struct Pass {
  std::string_view name;
  std::string_view does;  // half a line, for people
  std::function<void(Graph&)> run;
  bool enabled = true;
  Transients leaves = Transients::kInPlace;
};

// Called after each pass that is enabled.
using AfterPass = std::function<void(const Pass&, const Graph&)>;

// `verified`: false where another run of the same passes is.
void run_passes(std::span<const Pass> passes, Graph& graph, const AfterPass& after = {},
                bool verified = true);

}  // namespace skein
