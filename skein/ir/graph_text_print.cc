#include "skein/ir/graph_text.h"

namespace skein {
namespace {

std::string join_names(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (const ValueId id : ids) {
    if (!text.empty()) text += ", ";
    text += id == kNoValue ? std::string("_") : graph.value(id).name;
  }
  return text;
}

std::string join_types(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (const ValueId id : ids) {
    if (!text.empty()) text += ", ";
    text += graph.type(id).to_string(graph.mesh());
    if (graph.value(id).transient) text += "!";
  }
  return text;
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text = "skein graph\nmesh";
  for (const MeshAxis& axis : graph.mesh().axes()) {
    text += fmt::format(" {}={}", axis.name, axis.size);
  }
  text += '\n';
  for (const Value& value : graph.values()) {
    if (value.role == Role::kActivation) continue;
    text += fmt::format("{} {} : {}\n", role_name(value.role), value.name,
                        value.type.to_string(graph.mesh()));
  }
  const Node* previous = nullptr;
  for (const Node& node : graph.nodes()) {
    if (previous == nullptr || previous->phase != node.phase) {
      text += fmt::format("{}\n", phase_name(node.phase));
    }
    previous = &node;
    text += fmt::format("  {} = {}({})", join_names(graph, node.outputs), node.op->name,
                        join_names(graph, node.inputs));
    if (!node.attrs.empty()) text += " " + node.attrs.to_string();
    text += " : " + join_types(graph, node.outputs);
    if (!node.scope.name.empty()) text += " @" + node.scope.name;
    if (node.chunk != 0) text += fmt::format(" #{}", node.chunk);
    if (node.last_only) text += " last";
    text += '\n';
  }
  for (const ValueId id : graph.outputs()) text += fmt::format("output {}\n", graph.value(id).name);
  return text;
}

}  // namespace skein
