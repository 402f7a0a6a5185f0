#include "skein/passes/parallel/zero.h"

#include <algorithm>
#include <map>
#include <string>

#include "skein/ops/fill_zero/fill_zero.h"
#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

using NodePlace = std::pair<Phase, Scope>;  // where a node runs

// Rebuilds the list of nodes and inserts new nodes on the way.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph), axes_(graph.mesh().axes_of_copies()) {}

 protected:
  // Runs `append`, which adds nodes to the graph, as part of `place`; they come next in the order.
  template <typename Append>
  void insert(const NodePlace& place, const Append& append) {
    graph_.set_phase(place.first);
    graph_.set_scope(place.second);
    const size_t before = graph_.nodes().size();
    append();
    for (size_t i = before; i < graph_.nodes().size(); ++i) order_.push_back(graph_.nodes()[i]);
    graph_.set_scope({});
  }
  void finish() { graph_.replace_nodes(std::move(order_)); }
  void make_flat(ValueId id) {
    for (const int axis : axes_) graph_.value(id).type.placements[axis] = Placement::flat();
  }
  const std::string& name_of(int axis) const { return graph_.mesh().axis(axis).name; }

  Graph& graph_;
  const std::vector<int> axes_;  // the outer one first
  std::vector<Node> order_;
};

class WeightSharder : Rewriter {
 public:
  using Rewriter::Rewriter;

  void run() {
    const std::vector<Node> nodes = graph_.nodes();
    for (const Node& node : nodes) {
      for (const ValueId id : node.inputs) {
        if (id != kNoValue && graph_.value(id).role == Role::kParameter) {
          std::vector<ValueId>& used = used_[{node.phase, node.scope}];
          if (std::find(used.begin(), used.end(), id) == used.end()) used.push_back(id);
        }
      }
    }
    for (const auto& [place, parameters] : used_) {
      for (const ValueId id : parameters) make_flat(id);
    }
    for (Node node : nodes) {
      gather({node.phase, node.scope});
      for (ValueId& id : node.inputs) {
        const auto found = whole_.find({{node.phase, node.scope}, id});
        if (found != whole_.end()) id = found->second;
      }
      order_.push_back(std::move(node));
    }
    finish();
  }

 private:
  void gather(const NodePlace& place) {
    const auto found = used_.find(place);
    if (found == used_.end()) return;
    insert(place, [&] {
      std::vector<ValueId> whole = found->second;
      for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
        whole = redistribute(graph_, whole, name_of(*axis), Placement::replicated());
      }
      for (size_t i = 0; i < whole.size(); ++i) whole_[{place, found->second[i]}] = whole[i];
    });
    used_.erase(found);
  }

  std::map<NodePlace, std::vector<ValueId>>
      used_;  // parameters that are still to be gathered there
  std::map<std::pair<NodePlace, ValueId>, ValueId> whole_;
};

class EarlyReducer : Rewriter {
 public:
  using Rewriter::Rewriter;

  void run() {
    const std::vector<Node> nodes = graph_.nodes();
    follow_sums(nodes);
    for (size_t i = 0; i < nodes.size(); ++i) {
      Node node = nodes[i];
      const NodePlace place{node.phase, node.scope};
      for (ValueId& id : node.inputs) start_sum(id, place);
      order_.push_back(std::move(node));
      const auto ending = ending_.find(static_cast<int>(i));
      if (ending != ending_.end()) reduce(place, ending->second);
    }
    finish();
  }

 private:
  bool is_pending(ValueId id) const {
    return graph_.type(id).placements[axes_.front()].is_partial();
  }

  struct GradientSum {
    ValueId input;   // graph input, which becomes the rank's range
    ValueId latest;  // latest value of the whole sum
  };

  // Finds where each sum is complete; the sums of one place are reduced after the last of them.
  void follow_sums(const std::vector<Node>& nodes) {
    std::map<ValueId, size_t> sum_of;  // by value
    std::vector<GradientSum> sums;
    std::vector<int> last;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].op->layout == nullptr) continue;
      for (const Alias& alias : nodes[i].op->layout(graph_.call(nodes[i])).aliases) {
        const ValueId from = nodes[i].inputs[alias.input], to = nodes[i].outputs[alias.output];
        if (from == kNoValue || !alias.in_place) continue;
        if (graph_.value(from).role == Role::kGradient) {
          if (!is_pending(from)) continue;
          sum_of[from] = sums.size();
          sums.push_back({from, from});
          last.push_back(static_cast<int>(i));
        }
        const auto found = sum_of.find(from);
        if (found == sum_of.end()) continue;
        const size_t sum = found->second;
        sum_of[to] = sum;
        sums[sum].latest = to;
        last[sum] = static_cast<int>(i);
      }
    }
    std::map<NodePlace, int> end;
    for (const int i : last) {
      int& of_place = end.try_emplace({nodes[i].phase, nodes[i].scope}, i).first->second;
      of_place = std::max(of_place, i);
    }
    for (size_t sum = 0; sum < sums.size(); ++sum) {
      const Node& node = nodes[last[sum]];
      ending_[end.at({node.phase, node.scope})].push_back(sums[sum]);
    }
  }

  void start_sum(ValueId& id, const NodePlace& place) {
    if (id == kNoValue || graph_.value(id).role != Role::kGradient) return;
    if (!is_pending(id)) return;
    const ValueId input = id;
    insert(place,
           [&] { id = zeros(graph_, graph_.type(input), "whole." + graph_.value(input).name); });
    make_flat(input);
  }

  void reduce(const NodePlace& place, const std::vector<GradientSum>& sums) {
    std::vector<ValueId> whole, ranges;
    for (const GradientSum& sum : sums) {
      whole.push_back(sum.latest);
      ranges.push_back(sum.input);
    }
    insert(place, [&] {
      for (const int axis : axes_) {
        const bool is_last = axis == axes_.back();
        whole = redistribute(graph_, whole, name_of(axis), Placement::flat(),
                             is_last ? ranges : std::vector<ValueId>{});
      }
    });
  }

  std::map<int, std::vector<GradientSum>> ending_;  // by the node after which they are complete
};

}  // namespace

void shard_weights(Graph& graph) {
  if (!graph.mesh().axes_of_copies().empty()) WeightSharder(graph).run();
}

void shard_gradients(Graph& graph) {
  if (!graph.mesh().axes_of_copies().empty()) EarlyReducer(graph).run();
}

}  // namespace skein
