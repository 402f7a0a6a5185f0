#include "skein/passes/simplify.h"

#include <algorithm>
#include <map>

#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

// A node is live if someone reads it or it updates memory that outlives the step.
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
        // A chain of in-place updates begins at a graph input, which outlives the step.
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

// `now` outlives the program instead of `before`, under its name unless it is a graph input.
void stand_in(Graph& graph, ValueId before, ValueId now) {
  const auto& outputs = graph.outputs();
  if (std::find(outputs.begin(), outputs.end(), before) == outputs.end()) return;
  const std::string name = graph.value(before).name;
  graph.replace_output(before, now);
  if (graph.value(now).producer < 0) return;
  graph.rename(before, name + "/gone");
  graph.rename(now, name);
}

void forget_axes_of_size_one(Graph& graph) {
  for (size_t id = 0; id < graph.values().size(); ++id) {
    for (int axis = 0; axis < graph.mesh().num_axes(); ++axis) {
      Placement& placement = graph.value(static_cast<ValueId>(id)).type.placements.at(axis);
      if (graph.mesh().axis(axis).size == 1) placement = Placement::replicated();
    }
  }
  std::map<ValueId, ValueId> same;  // output of a removed redistribution -> its input
  std::vector<Node> kept;
  for (Node node : graph.nodes()) {
    for (ValueId& id : node.inputs) {
      if (const auto found = same.find(id); found != same.end()) id = found->second;
    }
    if (node.op == &kRedistribute && graph.mesh().size(node.attrs.text("axis")) == 1) {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        stand_in(graph, node.outputs[i], node.inputs[i]);
        same[node.outputs[i]] = node.inputs[i];
      }
    } else {
      kept.push_back(std::move(node));
    }
  }
  graph.replace_nodes(std::move(kept));
}

}  // namespace

void simplify(Graph& graph) {
  forget_axes_of_size_one(graph);
  graph.replace_nodes(without_dead_nodes(graph));
}

}  // namespace skein
