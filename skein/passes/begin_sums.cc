#include "skein/passes/begin_sums.h"

#include <algorithm>
#include <map>
#include <set>

#include "skein/ops/fill_zero/fill_zero.h"
#include "skein/ops/linear/linear.h"
#include "skein/ops/optimizer.h"
#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

// Follows each gradient sum from the graph's input through what is added to it in place.
class SumFollower {
 public:
  explicit SumFollower(const Graph& graph) : graph_(graph) {}

  // Whether all sums that the node overwrites are as they were when the program began.
  bool is_first(const Node& node) const {
    const std::vector<ValueId> sums = overwritten(node);
    return !sums.empty() && std::all_of(sums.begin(), sums.end(), [&](ValueId id) {
      return graph_.value(id).role == Role::kGradient && graph_.value(id).producer < 0;
    });
  }

  // Notes that the node stores what it overwrites, rather than adding to it.
  void note_stored(const Node& node) {
    for (const ValueId id : overwritten(node)) stored_.insert(id);
  }

  // Call for every node, in order.
  void follow(const Node& node) {
    if (node.op->layout == nullptr) return;
    for (const Alias& alias : node.op->layout(graph_.call(node)).aliases) {
      const ValueId from = node.inputs[alias.input];
      if (from != kNoValue && alias.in_place) input_of_[node.outputs[alias.output]] = input(from);
    }
  }

  // Whether nobody reads what is in the value's place when the next step begins.
  bool is_stored_anew(ValueId id) const {
    const ValueId at = input(id);
    return graph_.value(at).producer >= 0 || stored_.contains(at);
  }

 private:
  ValueId input(ValueId id) const {
    const auto found = input_of_.find(id);
    return found == input_of_.end() ? id : found->second;
  }

  std::vector<ValueId> overwritten(const Node& node) const {
    std::vector<ValueId> ids;
    if (node.op->layout == nullptr) return ids;
    for (const Alias& alias : node.op->layout(graph_.call(node)).aliases) {
      const ValueId id = node.inputs[alias.input];
      if (id != kNoValue && alias.in_place) ids.push_back(id);
    }
    return ids;
  }

  const Graph& graph_;
  std::map<ValueId, ValueId> input_of_;  // the first value in the place of one that overwrites
  std::set<ValueId> stored_;
};

// Leaves of a fill_zero what must be zero; nothing may be left.
void pass_over(Node& node, const SumFollower& sums) {
  Node left = node;
  left.inputs.clear();
  left.outputs.clear();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (sums.is_stored_anew(node.inputs[i])) continue;
    left.inputs.push_back(node.inputs[i]);
    left.outputs.push_back(node.outputs[i]);
  }
  node = std::move(left);
}

}  // namespace

void begin_sums(Graph& graph) {
  SumFollower sums(graph);
  std::vector<Node> nodes;
  for (Node node : graph.nodes()) {
    const bool multiplies = node.op == &kLinearDw || node.op == &kLinearDxDw;
    const bool overwrites = node.op == &kRedistribute && node.attrs.has("into");
    if (multiplies && sums.is_first(node)) node.attrs.set(std::string(kFromZero), true);
    if ((multiplies || overwrites) && sums.is_first(node)) sums.note_stored(node);
    const Optimizer* optimizer = optimizer_of(*node.op);
    if (optimizer != nullptr && sums.is_stored_anew(node.inputs[optimizer->gradient])) {
      node.attrs.set(std::string(kKeepsGradient), true);
    }
    if (node.op == &kFillZero) pass_over(node, sums);
    if (node.op == &kFillZero && node.inputs.empty()) continue;
    sums.follow(node);
    nodes.push_back(std::move(node));
  }
  graph.replace_nodes(std::move(nodes));
}

}  // namespace skein
