#include "skein/passes/use_fp8.h"

#include <algorithm>
#include <map>
#include <vector>

#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear.h"

namespace skein {
namespace {

int num_parts(const Node& node) { return static_cast<int>(node.attrs.integer("parts")); }

std::vector<ValueId> gradients_of(const Node& node) {
  return {node.inputs.begin(), node.inputs.begin() + num_parts(node)};
}

// linear_dw, with what linear_dx of the same gradients makes.
Node joined(const Node& dw, const Node& dx) {
  Node node = dw;
  node.op = &kLinearDxDw;
  node.inputs = dx.inputs;
  node.inputs.insert(node.inputs.end(), dw.inputs.begin() + num_parts(dw), dw.inputs.end());
  node.outputs = dx.outputs;
  node.outputs.insert(node.outputs.end(), dw.outputs.begin(), dw.outputs.end());
  return node;
}

// Whether the op can find the largest magnitude of its outputs (skein/ops/largest.h).
bool can_find_largest(const Graph& graph, Node node) {
  node.attrs.set("largest", true);
  return node.op->infer(graph.call(node)).size() == node.outputs.size() + 1;
}

// Before each node the fp8_largest of its operands, unless they have one, or the op that makes just
// these can find it.
std::vector<Node> with_scales(Graph& graph, const std::vector<Node>& nodes) {
  std::vector<Node> order;
  std::map<std::vector<ValueId>, size_t> maker_of;  // of all outputs of a node, where in `order`
  std::map<std::vector<ValueId>, ValueId> largest_of;
  for (Node node : nodes) {
    const auto groups =
        is_fp8(node.attrs) ? fp8_groups(node.op->name, num_parts(node)) : std::vector<Fp8Group>();
    for (const Fp8Group& group : groups) {
      const auto begin = node.inputs.begin() + group.begin;
      const std::vector<ValueId> operands(begin, begin + group.count);
      const auto [largest, is_new] = largest_of.try_emplace(operands, kNoValue);
      if (is_new) {
        graph.set_scope(node.scope);
        graph.set_phase(node.phase);
        largest->second =
            graph.add1(kFp8Largest, operands, {}, "largest." + graph.value(operands.front()).name);
        const auto maker = maker_of.find(operands);
        if (maker != maker_of.end() && can_find_largest(graph, order[maker->second])) {
          order[maker->second].attrs.set("largest", true);
          order[maker->second].outputs.push_back(largest->second);
        } else {
          order.push_back(graph.nodes().back());
          order.back().chunk = node.chunk;
        }
      }
      node.inputs.push_back(largest->second);
    }
    maker_of[node.outputs] = order.size();
    order.push_back(std::move(node));
  }
  return order;
}

}  // namespace

void use_fp8(Graph& graph, bool fast_accumulation) {
  struct Dw {
    int index;    // in the graph
    size_t node;  // among `nodes`
  };
  std::vector<Node> nodes;
  std::map<std::vector<ValueId>, Dw> dw_of;  // by gradients
  for (int index = 0; index < static_cast<int>(graph.nodes().size()); ++index) {
    Node node = graph.nodes()[index];
    if (node.op->can_use_fp8 && node.scope.is_layer()) {
      node.attrs.set("fp8", true);
      if (fast_accumulation && node.op == &kLinear) node.attrs.set("fast_accumulation", true);
      if (node.op == &kLinearDw) dw_of[gradients_of(node)] = {index, nodes.size()};
      const auto found = node.op == &kLinearDx ? dw_of.find(gradients_of(node)) : dw_of.end();
      const auto is_there = [&](ValueId id) {
        return graph.value(id).producer < found->second.index;
      };
      if (found != dw_of.end() && std::all_of(node.inputs.begin(), node.inputs.end(), is_there)) {
        nodes[found->second.node] = joined(nodes[found->second.node], node);
        continue;
      }
    }
    nodes.push_back(std::move(node));
  }
  graph.replace_nodes(with_scales(graph, nodes));
}

}  // namespace skein
