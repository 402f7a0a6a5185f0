#include "skein/passes/use_fp8.h"

namespace skein {

void use_fp8(Graph& graph) {
  std::vector<Node> nodes = graph.nodes();
  for (Node& node : nodes) {
    if (node.op->can_use_fp8 && node.scope.is_layer()) node.attrs.set("fp8", true);
  }
  graph.replace_nodes(std::move(nodes));
}

}  // namespace skein
