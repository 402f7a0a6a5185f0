#include "skein/passes/lower.h"

#include "skein/ir/verify.h"

namespace skein {
namespace {

// A node lives if someone reads it or it updates memory that outlives the step.
std::vector<Node> without_dead_nodes(const Graph& graph) {
  std::vector<bool> read(graph.values().size(), false);
  for (const ValueId id : graph.outputs()) read[id] = true;
  std::vector<Node> kept;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    bool alive = false;
    for (const ValueId id : node->outputs) alive = alive || read[id];
    if (!alive && node->op->layout != nullptr) {
      for (const Alias& alias : node->op->layout(graph.call(*node)).aliases) {
        const ValueId id = node->inputs[alias.input];
        // The chain of an accumulated value begins at a graph input.
        alive = alive || (alias.in_place && id != kNoValue);
      }
    }
    if (!alive) continue;
    for (const ValueId id : node->inputs) {
      if (id != kNoValue) read[id] = true;
    }
    kept.push_back(*node);
  }
  return {kept.rbegin(), kept.rend()};
}

}  // namespace

void lower(Graph& graph) {
  graph.replace_nodes(without_dead_nodes(graph));
  verify(graph, "lower");
}

}  // namespace skein
