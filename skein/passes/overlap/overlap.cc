#include "skein/passes/overlap/overlap.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

constexpr size_t kInFlight = 2;
constexpr int64_t kFirstChannel = int64_t{1} << 33;  // above the channels of pipelines

// A sum of a bucket's gradients over an axis.
struct BucketSum {
  size_t index = 0;  // of its node, in the update
  size_t after = 0;  // the last node before the update that it waits for
  // Sums over other axes whose results it adds, by index. If their last wait comes before `after`,
  // it stays in the update.
  std::set<size_t> behind = {};
};

class Overlapper {
 public:
  explicit Overlapper(Graph& graph, bool early_sums) : graph_(graph), nodes_(graph.nodes()) {
    if (early_sums) find_gradients();
  }

  void run() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (is_gather(nodes_[i])) {
        defer_wait(i);
      } else if (is_sum(nodes_[i])) {
        find_early(i);
      }
    }
    start_early();
    write();
  }

 private:
  struct Waiting {
    size_t index;
    Node wait;
  };

  static bool needs(const Node& node, const std::vector<ValueId>& values) {
    return std::any_of(values.begin(), values.end(), [&](ValueId id) {
      return std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
    });
  }

  // The gradient sums, and what is added to them in place.
  void find_gradients() {
    for (size_t id = 0; id < graph_.values().size(); ++id) {
      if (graph_.values()[id].role == Role::kGradient) gradients_.insert(static_cast<ValueId>(id));
    }
    for (const Node& node : nodes_) {
      if (node.op->layout == nullptr) continue;
      for (const Alias& alias : node.op->layout(graph_.call(node)).aliases) {
        if (gradients_.contains(node.inputs[alias.input])) {
          gradients_.insert(node.outputs[alias.output]);
        }
      }
      if (is_sum(node)) gradients_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  bool is_gather(const Node& node) const {
    if (node.op != &kRedistribute || node.phase != Phase::kUpdate) return false;
    const int axis = graph_.mesh().find(node.attrs.text("axis"));
    return graph_.type(node.inputs.front()).placements[axis].is_flat();
  }
  bool is_sum(const Node& node) const {
    if (node.op != &kRedistribute || node.phase != Phase::kUpdate) return false;
    const int axis = graph_.mesh().find(node.attrs.text("axis"));
    return graph_.type(node.inputs.front()).placements[axis].is_partial() &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return gradients_.contains(id); });
  }

  // Starts after the last gradient of the bucket, but not before the backward phase.
  void find_early(size_t index) {
    BucketSum sum{.index = index};
    std::optional<int> chunk;
    for (const ValueId id : nodes_[index].inputs) {
      const int producer = graph_.value(id).producer;
      if (producer < 0) return;
      const auto from = static_cast<size_t>(producer);
      const auto before = sums_.find(from);
      if (before == sums_.end() && nodes_[from].phase == Phase::kUpdate) return;
      sum.after = std::max(sum.after, before == sums_.end() ? from : before->second.after);
      if (before != sums_.end()) sum.behind.insert(from);
      const int of_input = nodes_[before == sums_.end() ? from : before->second.after].chunk;
      if (chunk.value_or(of_input) != of_input) return;  // gradients of two programs
      chunk = of_input;
    }
    if (nodes_[sum.after].phase == Phase::kForward) {
      const auto first = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& other) {
        return other.phase == Phase::kBackward && other.chunk == chunk;
      });
      if (first == nodes_.end()) return;
      sum.after = static_cast<size_t>(first - nodes_.begin());
    }
    sums_.emplace(index, std::move(sum));
  }

  void start_early() {
    std::vector<const BucketSum*> order;
    for (const auto& [index, sum] : sums_) {
      if (sum.behind.empty()) order.push_back(&sum);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const BucketSum* a, const BucketSum* b) { return a->after < b->after; });
    for (const BucketSum* sum : order) start(*sum, sum->after);
  }

  // At most kInFlight sums are in flight over an axis in a program: a further one first waits for
  // the oldest, and has the others go on.
  void start(const BucketSum& sum, size_t after) {
    const Node& node = nodes_[sum.index];
    std::vector<Waiting>& waiting = in_flight_[{nodes_[after].chunk, node.attrs.text("axis")}];
    if (waiting.size() == kInFlight) {
      const Waiting oldest = std::move(waiting.front());
      waiting.erase(waiting.begin());
      wait(oldest, after);
    }
    const bool is_whole = node.attrs.text("to") == "R";
    RedistributeHalves halves = split_redistribute(
        graph_, node, next_channel_++, is_whole ? Results::kOverTerms : Results::kInPlace);
    if (!waiting.empty()) halves.start.attrs.set("advances", true);
    place_early(std::move(halves.start), after);
    replaced_[sum.index] = {halves.wait};
    waiting.push_back({sum.index, std::move(halves.wait)});
  }

  void wait(const Waiting& oldest, size_t after) {
    place_early(oldest.wait, after);
    replaced_[oldest.index] = {};
    for (auto& [index, sum] : sums_) {
      const bool was_last = sum.behind.erase(oldest.index) > 0 && sum.behind.empty();
      if (was_last && sum.after <= after) start(sum, after);
    }
  }

  void place_early(Node node, size_t after) {
    node.phase = nodes_[after].phase;
    node.scope = nodes_[after].scope;
    node.chunk = nodes_[after].chunk;
    node.last_only = true;
    node.attrs.set("early", true);
    behind_[after].push_back(std::move(node));
  }

  // A gather is waited for after the next one over its axis has started or where its results are
  // needed, the last at the end of the update.
  void defer_wait(size_t index) {
    const Node& gather = nodes_[index];
    size_t after = index;
    while (after + 1 < nodes_.size() && !needs(nodes_[after + 1], gather.outputs)) {
      ++after;
      const Node& other = nodes_[after];
      if (is_gather(other) && other.attrs.text("axis") == gather.attrs.text("axis")) break;
    }
    RedistributeHalves halves = split_redistribute(graph_, nodes_[index], next_channel_++);
    replaced_[index] = {std::move(halves.start)};
    behind_[after].push_back(std::move(halves.wait));
  }

  void write() {
    std::vector<Node> order;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto instead = replaced_.find(i);
      if (instead == replaced_.end()) {
        order.push_back(nodes_[i]);
      } else {
        order.insert(order.end(), instead->second.begin(), instead->second.end());
      }
      const auto behind = behind_.find(i);
      if (behind != behind_.end()) {
        order.insert(order.end(), behind->second.begin(), behind->second.end());
      }
    }
    graph_.replace_nodes(std::move(order));
  }

  Graph& graph_;
  const std::vector<Node> nodes_;
  std::set<ValueId> gradients_;       // none where sums may not start early
  std::map<size_t, BucketSum> sums_;  // by index
  std::map<std::pair<int, std::string>, std::vector<Waiting>> in_flight_;  // by chunk and axis
  std::map<size_t, std::vector<Node>> replaced_;                           // by index
  std::map<size_t, std::vector<Node>> behind_;
  int64_t next_channel_ = kFirstChannel;
};

}  // namespace

void overlap(Graph& graph, bool early_sums) { Overlapper(graph, early_sums).run(); }

}  // namespace skein
