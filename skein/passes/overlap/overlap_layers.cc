#include "skein/passes/overlap/overlap_layers.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "skein/ops/redistribute/redistribute.h"
#include "skein/passes/memory/storage.h"

namespace skein {
namespace {

constexpr size_t kMaxDelayed = 2;                    // products
constexpr int64_t kFirstChannel = int64_t{1} << 35;  // above those of overlap and offload

// A node of the program in its new order, or one of the two halves of a collective.
struct OrderedNode {
  enum Kind : uint8_t { kRun, kStart, kWait } kind;
  size_t node;
};

// Whether the rows of each value lie without gaps.
bool are_dense(const Graph& graph, const StorageAssignment& assignment,
               const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [&](ValueId id) {
    const StoragePlace& place = assignment.places[static_cast<size_t>(id)];
    const Shape local = graph.type(id).local_shape(graph.mesh());
    const int64_t rows = local.rank() == 0 ? 1 : local.dim(0);
    const Storage& storage = assignment.storages[static_cast<size_t>(place.storage)];
    return rows <= 1 || storage.cols == local.num_elements() / rows;
  });
}

// Orders the nodes of one phase of one chunk.
class Scheduler {
 public:
  Scheduler(const Graph& graph, const StorageAssignment& storage, std::vector<size_t> program)
      : graph_(graph), storage_(storage), program_(std::move(program)) {
    for (const size_t index : program_) {
      for (const ValueId id : node(index).inputs) {
        if (id != kNoValue) users_[id].push_back(index);
      }
      for (const ValueId id : node(index).outputs) producers_[id] = index;
    }
    for (const size_t index : program_) {
      if (!can_split(index)) continue;
      collectives_.insert(index);
      if (lies_ready(index)) add_ahead(index);
    }
    for (const size_t index : program_) {
      hides_ =
          hides_ || (collectives_.contains(index) && !ahead_of_.contains(index) && is_read(index));
    }
  }

  std::vector<OrderedNode> run() {
    for (auto& [axis, groups] : ahead_) start_next(groups);
    for (const size_t index : program_) {
      if (started_.contains(index)) continue;
      if (is_delayable(index)) {
        if (delayed_.size() == kMaxDelayed) run_delayed(delayed_.front());
        delayed_.push_back(index);
      } else {
        make_ready(index, Fill::kYes);
        collectives_.contains(index) ? start(index) : emit(OrderedNode::kRun, index);
      }
    }
    while (!delayed_.empty()) run_delayed(delayed_.front());
    while (!under_way_.empty()) wait(under_way_.front());
    return std::move(events_);
  }

 private:
  // Whether a delayed product runs while a collective is waited for.
  enum class Fill : bool { kNo, kYes };

  // The gathers over one axis of what lies ready, by scope.
  struct Ahead {
    std::vector<std::vector<size_t>> groups;
    size_t next = 0;
  };

  const Node& node(size_t index) const { return graph_.nodes()[index]; }

  bool can_split(size_t index) const {
    const Node& move = node(index);
    if (move.op != &kRedistribute) return false;
    const int axis = graph_.mesh().find(move.attrs.text("axis"));
    const Placement from = graph_.type(move.inputs.front()).placements[axis];
    const bool gathers = from.is_sharded() || from.is_flat();
    if (graph_.mesh().axis(axis).size == 1 || from.is_replicated()) return false;
    if (from.is_sharded() && from.dim() > 0) return false;  // its results are put in order after it
    if (!gathers && !are_dense(graph_, storage_, move.inputs)) return false;
    const bool can_copy = !gathers && !move.attrs.has("into");
    return (move.scope.layer != Scope::kBehind || lies_ready(index)) &&
           (can_copy || are_dense(graph_, storage_, move.outputs));
  }

  // Also of what was gathered over an inner axis, which lay ready.
  bool lies_ready(size_t index) const {
    const Node& move = node(index);
    return move.op == &kRedistribute && !move.attrs.has("into") &&
           std::all_of(move.inputs.begin(), move.inputs.end(), [&](ValueId id) {
             const auto producer = producers_.find(id);
             return producer == producers_.end() || ahead_of_.contains(producer->second);
           });
  }

  bool is_read(size_t index) const {
    return std::any_of(node(index).outputs.begin(), node(index).outputs.end(),
                       [&](ValueId id) { return users_.contains(id); });
  }

  // A product whose results are gradients, which this program only adds up or sums over ranks.
  bool is_delayable(size_t index) const {
    const Node& work = node(index);
    if (!hides_ || work.phase != Phase::kBackward || !work.scope.is_layer()) return false;
    if (work.op == &kRedistribute) return false;
    if (work.op->cost == nullptr || work.op->cost(graph_.call(work)).flops == 0) return false;
    return std::none_of(work.inputs.begin(), work.inputs.end(),
                        [&](ValueId id) { return id != kNoValue && graph_.value(id).transient; }) &&
           std::all_of(work.outputs.begin(), work.outputs.end(), [&](ValueId id) {
             const auto users = users_.find(id);
             return users == users_.end() ||
                    std::all_of(users->second.begin(), users->second.end(),
                                [&](size_t user) { return node(user).attrs.has("into"); });
           });
  }

  void add_ahead(size_t index) {
    Ahead& ahead = ahead_[node(index).attrs.text("axis")];
    if (ahead.groups.empty() || node(ahead.groups.back().front()).scope != node(index).scope) {
      ahead.groups.emplace_back();
    }
    ahead.groups.back().push_back(index);
    ahead_of_[index] = ahead.groups.size();
  }

  void start_next(Ahead& ahead) {
    if (ahead.next == ahead.groups.size()) return;
    for (const size_t index : ahead.groups[ahead.next++]) start(index);
  }

  void emit(OrderedNode::Kind kind, size_t index) { events_.push_back({kind, index}); }

  void start(size_t index) {
    if (!started_.insert(index).second) return;
    for (const ValueId id : node(index).inputs) {
      const auto producer = producers_.find(id);
      if (producer == producers_.end() || !ahead_of_.contains(producer->second)) continue;
      start(producer->second);
      if (is_in(under_way_, producer->second)) wait(producer->second);
    }
    // Sums that nobody reads here: two scopes' at a time.
    const auto is_unread = [&](size_t other) { return !is_read(other); };
    if (is_unread(index)) {
      const auto oldest = std::find_if(under_way_.begin(), under_way_.end(), is_unread);
      if (oldest != under_way_.end()) wait(*oldest);
    }
    emit(OrderedNode::kStart, index);
    under_way_.push_back(index);
  }

  void wait(size_t index) {
    emit(OrderedNode::kWait, index);
    under_way_.erase(std::find(under_way_.begin(), under_way_.end(), index));
    const auto found = ahead_of_.find(index);
    if (found == ahead_of_.end()) return;
    Ahead& ahead = ahead_.at(node(index).attrs.text("axis"));
    if (ahead.next == found->second) start_next(ahead);
  }

  void run_delayed(size_t index) {
    delayed_.erase(std::find(delayed_.begin(), delayed_.end(), index));
    make_ready(index, Fill::kNo);
    emit(OrderedNode::kRun, index);
  }

  // Everything that the node reads is there, and nobody still needs what it overwrites.
  void make_ready(size_t index, Fill fill) {
    for (const ValueId id : node(index).inputs) {
      const auto producer = producers_.find(id);
      if (producer == producers_.end()) continue;
      const size_t from = producer->second;
      if (is_in(delayed_, from)) run_delayed(from);
      if (fill == Fill::kYes && is_in(under_way_, from)) run_product_beside(from);
      if (is_in(under_way_, from)) wait(from);
    }
    for (const int storage : overwritten_by(index)) {
      for (const size_t reader : std::vector<size_t>(delayed_.begin(), delayed_.end())) {
        const bool is_before = reader < index;  // as they stood; others read what is written here
        if (is_before && is_in(delayed_, reader) && reads(reader, storage)) run_delayed(reader);
      }
      for (const size_t reader : std::vector<size_t>(under_way_)) {
        if (is_in(under_way_, reader) && reads(reader, storage)) wait(reader);
      }
    }
  }

  // A collective's result is needed: until it is there, the oldest delayed product runs that can.
  void run_product_beside(size_t collective) {
    if (ahead_of_.contains(collective)) return;
    const auto product = std::find_if(delayed_.begin(), delayed_.end(), [&](size_t delayed) {
      return !reads_result(delayed, collective);
    });
    if (product != delayed_.end()) run_delayed(*product);
  }

  std::set<int> overwritten_by(size_t index) const {
    std::set<int> storages;
    if (node(index).op->layout == nullptr) return storages;
    for (const Alias& alias : node(index).op->layout(graph_.call(node(index))).aliases) {
      const ValueId input = node(index).inputs[static_cast<size_t>(alias.input)];
      if (alias.in_place && input != kNoValue) storages.insert(storage_of(input));
    }
    return storages;
  }

  int storage_of(ValueId id) const { return storage_.places[static_cast<size_t>(id)].storage; }

  bool reads(size_t index, int storage) const {
    return std::any_of(node(index).inputs.begin(), node(index).inputs.end(),
                       [&](ValueId id) { return id != kNoValue && storage_of(id) == storage; });
  }

  bool reads_result(size_t index, size_t collective) const {
    return std::any_of(node(index).inputs.begin(), node(index).inputs.end(), [&](ValueId id) {
      const auto producer = producers_.find(id);
      return producer != producers_.end() && producer->second == collective;
    });
  }

  template <typename List>
  static bool is_in(const List& list, size_t index) {
    return std::find(list.begin(), list.end(), index) != list.end();
  }

  const Graph& graph_;
  const StorageAssignment& storage_;
  const std::vector<size_t> program_;
  std::map<ValueId, std::vector<size_t>> users_;
  std::map<ValueId, size_t> producers_;
  std::set<size_t> collectives_, started_;
  std::map<std::string, Ahead> ahead_;  // by axis
  std::map<size_t, size_t> ahead_of_;   // by collective, the group that starts when it is used
  bool hides_ = false;                  // there are collectives to compute behind
  std::deque<size_t> delayed_;          // products
  std::vector<size_t> under_way_;       // collectives
  std::vector<OrderedNode> events_;
};

// Collectives between whose halves something is computed; the others stay whole.
std::set<size_t> hidden(const Graph& graph, const std::vector<OrderedNode>& events) {
  std::set<size_t> found, under_way;
  for (const OrderedNode& event : events) {
    if (event.kind == OrderedNode::kStart) under_way.insert(event.node);
    if (event.kind == OrderedNode::kWait) under_way.erase(event.node);
    const OpDef& op = *graph.nodes()[event.node].op;
    if (event.kind != OrderedNode::kRun || op.cost == nullptr) continue;
    if (op.cost(graph.call(graph.nodes()[event.node])).flops == 0) continue;
    found.insert(under_way.begin(), under_way.end());
    under_way.clear();
  }
  return found;
}

std::set<size_t> started(const std::vector<OrderedNode>& events) {
  std::set<size_t> found;
  for (const OrderedNode& event : events) {
    if (event.kind == OrderedNode::kStart) found.insert(event.node);
  }
  return found;
}

}  // namespace

void overlap_layers(Graph& graph, SplitCollectives which) {
  const StorageAssignment storage = assign_storage(graph);
  std::map<std::pair<Phase, int>, std::vector<size_t>> programs;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.phase != Phase::kUpdate) programs[{node.phase, node.chunk}].push_back(i);
  }
  const std::vector<Node> nodes = graph.nodes();
  // By the index of a program's first node: what stands there instead of the whole program.
  std::vector<std::vector<Node>> instead(nodes.size());
  int64_t channel = kFirstChannel;
  for (const auto& [phase, program] : programs) {
    const std::vector<OrderedNode> events = Scheduler(graph, storage, program).run();
    const std::set<size_t> split =
        which == SplitCollectives::kAll ? started(events) : hidden(graph, events);
    std::map<size_t, Node> waits;
    for (const OrderedNode& event : events) {
      std::vector<Node>& order = instead[program.front()];
      if (event.kind == OrderedNode::kWait && split.contains(event.node)) {
        order.push_back(waits.at(event.node));
      } else if (event.kind == OrderedNode::kStart && split.contains(event.node)) {
        const Node& move = nodes[event.node];
        const bool in_place = are_dense(graph, storage, move.outputs);
        RedistributeHalves halves = split_redistribute(
            graph, move, channel++, in_place ? Results::kInPlace : Results::kCopied);
        order.push_back(std::move(halves.start));
        waits.emplace(event.node, std::move(halves.wait));
      } else if (event.kind != OrderedNode::kWait) {
        order.push_back(nodes[event.node]);
      }
    }
  }
  std::vector<Node> order;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].phase == Phase::kUpdate) order.push_back(nodes[i]);
    order.insert(order.end(), instead[i].begin(), instead[i].end());
  }
  graph.replace_nodes(std::move(order));
}

}  // namespace skein
