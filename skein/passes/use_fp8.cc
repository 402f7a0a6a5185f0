#include "skein/passes/use_fp8.h"

#include "skein/ops/linear/linear.h"

namespace skein {

void use_fp8(Graph& graph) {
  std::vector<Node> nodes = graph.nodes();
  for (Node& node : nodes) {
    const bool product = node.op == &kLinear || node.op == &kLinearDx || node.op == &kLinearDw;
    if (product && node.scope.is_layer()) node.attrs.set("fp8", true);
  }
  graph.replace_nodes(std::move(nodes));
}

}  // namespace skein
