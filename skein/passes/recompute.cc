#include "skein/passes/recompute.h"

#include <algorithm>
#include <map>

namespace skein {
namespace {

class Recomputer {
 public:
  Recomputer(Graph& graph, RecomputePolicy policy) : graph_(graph), policy_(policy) {
    if (policy == RecomputePolicy::kFull) find_crossing();
  }

  void run() {
    const std::vector<Node> nodes = graph_.nodes();
    for (const Node& original : nodes) {
      Node node = original;
      if (node.phase == Phase::kBackward) {
        for (ValueId& id : node.inputs) {
          if (id != kNoValue) id = available(id);
        }
      }
      order_.push_back(std::move(node));
    }
    graph_.replace_nodes(std::move(order_));
  }

 private:
  static bool in_layer(const Node& node) { return node.scope.is_layer(); }

  // Values that other scopes read in forward: these are kept.
  void find_crossing() {
    crossing_.resize(graph_.values().size());
    for (const Node& node : graph_.nodes()) {
      if (node.phase != Phase::kForward) continue;
      for (const ValueId id : node.inputs) {
        if (id == kNoValue || graph_.value(id).producer < 0) continue;
        if (graph_.nodes()[graph_.value(id).producer].scope != node.scope) crossing_[id] = true;
      }
    }
  }

  // The value that backward reads instead of `id`: itself, or its clone, appended on first use.
  ValueId available(ValueId id) {
    const auto found = clones_.find(id);
    if (found != clones_.end()) return found->second;
    const int producer = graph_.value(id).producer;
    if (producer < 0) return id;
    const Node node = graph_.nodes()[producer];
    if (node.phase != Phase::kForward) return id;
    if (policy_ == RecomputePolicy::kFull && in_layer(node) && !crossing_[id]) {
      clone(node, node.inputs, {});
      return clones_.at(id);
    }
    if (policy_ == RecomputePolicy::kSelective && node.op->rematerialize != nullptr) {
      const Rematerialization rematerialize = node.op->rematerialize(node);
      for (const int output : rematerialize.outputs) {
        if (node.outputs[output] != id) continue;
        clone(node, rematerialize.inputs, rematerialize.outputs);
        return clones_.at(id);
      }
    }
    return id;
  }

  // Appends the node again over `inputs`; `outputs` lists the outputs to replace (empty: all).
  void clone(const Node& node, std::vector<ValueId> inputs, const std::vector<int>& outputs) {
    for (ValueId& id : inputs) {
      if (id != kNoValue) id = available(id);
    }
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) names.push_back("again." + graph_.value(id).name);
    graph_.set_scope(node.scope);
    graph_.set_phase(Phase::kBackward);
    const std::vector<ValueId> again = graph_.add(*node.op, std::move(inputs), node.attrs, names);
    order_.push_back(graph_.nodes().back());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const bool taken =
          outputs.empty() || std::find(outputs.begin(), outputs.end(), i) != outputs.end();
      if (taken) clones_.emplace(node.outputs[i], again[i]);
    }
  }

  Graph& graph_;
  RecomputePolicy policy_;
  std::vector<bool> crossing_;
  std::map<ValueId, ValueId> clones_;
  std::vector<Node> order_;
};

}  // namespace

RecomputePolicy parse_recompute_policy(std::string_view name) {
  if (name == "none") return RecomputePolicy::kNone;
  if (name == "selective") return RecomputePolicy::kSelective;
  if (name == "full") return RecomputePolicy::kFull;
  fail(ErrorCode::kUsage, "memory.recompute is '{}': expected none, selective or full", name);
}

void recompute(Graph& graph, RecomputePolicy policy) {
  if (policy != RecomputePolicy::kNone) Recomputer(graph, policy).run();
}

}  // namespace skein
