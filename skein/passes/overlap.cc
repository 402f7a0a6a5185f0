#include "skein/passes/overlap.h"

#include <algorithm>
#include <map>

#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

constexpr std::string_view kAxis = "dp";
constexpr size_t kInFlight = 2;
constexpr int64_t kFirstChannel = int64_t{1} << 33;  // above the channels of pipelines

class Overlapper {
 public:
  explicit Overlapper(Graph& graph, bool early_sums)
      : graph_(graph), early_sums_(early_sums), nodes_(graph.nodes()) {}

  void run() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (is_gather(nodes_[i])) {
        defer_wait(i);
      } else if (early_sums_ && is_sum(nodes_[i])) {
        find_early_start(i);
      }
    }
    start_early();
    write();
  }

 private:
  bool moves(const Node& node) const {
    return node.op == &kRedistribute && node.phase == Phase::kUpdate &&
           node.attrs.text("axis") == kAxis;
  }
  bool is_gather(const Node& node) const { return moves(node) && node.attrs.has("into"); }
  bool is_sum(const Node& node) const {
    if (!moves(node) || node.attrs.text("to") != "F") return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const int producer = graph_.value(id).producer;
      return producer >= 0 && nodes_[producer].phase != Phase::kUpdate;
    });
  }

  // Starts after the last gradient of the bucket, but not before the backward phase.
  void find_early_start(size_t index) {
    const Node& node = nodes_[index];
    int last = -1;
    for (const ValueId id : node.inputs) last = std::max(last, graph_.value(id).producer);
    size_t after = static_cast<size_t>(last);
    const int chunk = nodes_[after].chunk;
    for (const ValueId id : node.inputs) {
      if (nodes_[graph_.value(id).producer].chunk != chunk) return;  // gradients of two programs
    }
    if (nodes_[after].phase == Phase::kForward) {
      const auto first = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& other) {
        return other.phase == Phase::kBackward && other.chunk == chunk;
      });
      if (first == nodes_.end()) return;
      after = static_cast<size_t>(first - nodes_.begin());
    }
    early_.push_back({after, index});
  }

  // At most kInFlight sums are in flight in a program: a further one first waits for the oldest.
  void start_early() {
    std::stable_sort(early_.begin(), early_.end());
    std::map<int, std::vector<Waiting>> in_flight;  // by chunk
    for (const auto& [after, index] : early_) {
      RedistributeHalves halves = split_redistribute(graph_, nodes_[index], next_channel_++);
      std::vector<Waiting>& waiting = in_flight[nodes_[after].chunk];
      if (waiting.size() == kInFlight) {
        place_early(waiting.front().wait, after);
        replaced_[waiting.front().index] = {};
        waiting.erase(waiting.begin());
      }
      place_early(halves.start, after);
      replaced_[index] = {halves.wait};
      waiting.push_back({index, std::move(halves.wait)});
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

  // A gather is waited for after the next one has started, the last at the end of the update.
  void defer_wait(size_t index) {
    size_t next = index + 1;
    while (next < nodes_.size() && !is_gather(nodes_[next])) ++next;
    const size_t after = std::min(next, nodes_.size() - 1);
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

  struct Waiting {
    size_t index;
    Node wait;
  };

  Graph& graph_;
  const bool early_sums_;
  const std::vector<Node> nodes_;
  std::map<size_t, std::vector<Node>> replaced_;  // by index
  std::map<size_t, std::vector<Node>> behind_;
  std::vector<std::pair<size_t, size_t>> early_;  // (node to follow, node to start)
  int64_t next_channel_ = kFirstChannel;
};

}  // namespace

void overlap(Graph& graph, bool early_sums) { Overlapper(graph, early_sums).run(); }

}  // namespace skein
