#include "skein/passes/fuse_residual.h"

#include <algorithm>
#include <map>

#include "skein/ops/add/add.h"
#include "skein/ops/layer_norm/layer_norm.h"
#include "skein/ops/rms_norm/rms_norm.h"

namespace skein {
namespace {

// Both norms have the terms of their sum as inputs 0 and 1, and the sum as output 1.
bool can_fuse(const Graph& graph, const Node& sum, const Node& norm) {
  if (sum.op != &kAdd || (norm.op != &kRmsNorm && norm.op != &kLayerNorm)) return false;
  if (norm.inputs[0] != sum.outputs[0] || norm.inputs[1] != kNoValue) return false;
  const auto& kept = graph.outputs();
  return sum.phase == Phase::kForward && norm.phase == Phase::kForward && sum.chunk == norm.chunk &&
         std::find(kept.begin(), kept.end(), sum.outputs[0]) == kept.end();
}

}  // namespace

void fuse_residual(Graph& graph) {
  std::map<ValueId, ValueId> same;  // a sum that is gone -> h of its norm
  std::vector<Node> kept;
  for (Node node : graph.nodes()) {
    if (!kept.empty() && can_fuse(graph, kept.back(), node)) {
      same[node.inputs[0]] = node.outputs[1];
      node.inputs[0] = kept.back().inputs[0];
      node.inputs[1] = kept.back().inputs[1];
      kept.pop_back();
    }
    for (ValueId& id : node.inputs) {
      if (const auto found = same.find(id); found != same.end()) id = found->second;
    }
    kept.push_back(std::move(node));
  }
  graph.replace_nodes(std::move(kept));
}

}  // namespace skein
