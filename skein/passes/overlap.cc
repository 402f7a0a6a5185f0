#include "skein/passes/overlap.h"

#include <algorithm>
#include <map>

#include "skein/ir/verify.h"
#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

constexpr std::string_view kAxis = "dp";
constexpr int64_t kFirstChannel = int64_t{1} << 33;  // beyond those of pipelines

class Overlapper {
 public:
  explicit Overlapper(Graph& graph, bool early_sums)
      : graph_(graph), early_sums_(early_sums), nodes_(graph.nodes()) {}

  void run() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (is_gather(nodes_[i])) {
        defer_wait(i);
      } else if (early_sums_ && is_sum(nodes_[i])) {
        start_early(i);
      }
    }
    write();
    verify(graph_, "overlap");
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

  // Behind the last gradient of the bucket, but not before the backward phase.
  void start_early(size_t index) {
    const Node& node = nodes_[index];
    int last = -1;
    for (const ValueId id : node.inputs) last = std::max(last, graph_.value(id).producer);
    size_t after = static_cast<size_t>(last);
    const int chunk = nodes_[after].chunk;
    for (const ValueId id : node.inputs) {
      if (nodes_[graph_.value(id).producer].chunk != chunk) return;  // of two chunks' programs
    }
    if (nodes_[after].phase == Phase::kForward) {
      const auto first = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& other) {
        return other.phase == Phase::kBackward && other.chunk == chunk;
      });
      if (first == nodes_.end()) return;
      after = static_cast<size_t>(first - nodes_.begin());
    }
    RedistributeHalves halves = split_redistribute(graph_, node, next_channel_++);
    halves.start.phase = nodes_[after].phase;
    halves.start.scope = nodes_[after].scope;
    halves.start.chunk = chunk;
    halves.start.last_only = true;
    behind_[after].push_back(std::move(halves.start));
    replaced_[index] = {std::move(halves.wait)};
  }

  // A gather ends behind the start of the next one, the last at the end of the update.
  void defer_wait(size_t index) {
    size_t next = index + 1;
    while (next < nodes_.size() && !is_gather(nodes_[next])) ++next;
    const size_t after = std::min(next, nodes_.size() - 1);
    RedistributeHalves halves = split_redistribute(graph_, nodes_[index], next_channel_++);
    halves.start.phase = Phase::kUpdate;
    halves.start.scope = nodes_[index].scope;
    halves.start.chunk = nodes_[index].chunk;
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
  const bool early_sums_;
  const std::vector<Node> nodes_;
  std::map<size_t, std::vector<Node>> replaced_;  // by index
  std::map<size_t, std::vector<Node>> behind_;
  int64_t next_channel_ = kFirstChannel;
};

}  // namespace

void overlap(Graph& graph, bool early_sums) { Overlapper(graph, early_sums).run(); }

}  // namespace skein
