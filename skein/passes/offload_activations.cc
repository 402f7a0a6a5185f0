#include "skein/passes/offload_activations.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "skein/ops/offload/offload.h"
#include "skein/ops/pipeline/pipeline.h"
#include "skein/passes/memory/storage.h"

namespace skein {
namespace {

constexpr size_t kAhead = 2;                         // places whose copies are in flight
constexpr int64_t kFirstChannel = int64_t{1} << 34;  // above the channels of collectives

class Offloader {
 public:
  Offloader(Graph& graph, const OffloadOptions& options)
      : graph_(graph),
        options_(options),
        nodes_(graph.nodes()),
        assignment_(assign_storage(graph)),
        lives_(assignment_.storages.size()) {}

  void run() {
    find_lives();
    find_copies();
    place_copies();
    write();
  }

 private:
  struct Life {
    int last_forward = -1;    // node
    int first_backward = -1;  // node that reads it
    int num_before = 0;       // backward nodes of its chunk before first_backward
    int chunk = -1;
    bool stays = false;
  };
  struct OffloadedValue {
    ValueId value;
    int used;  // the first backward node that reads it
    ValueId stashed = kNoValue;
    ValueId fetched = kNoValue;
  };
  // Indices of the copies that begin, or end, before or after a node.
  using Copies = std::vector<size_t>;
  using AtNode = std::map<int, Copies>;

  int storage_of(ValueId id) const { return assignment_.places.at(id).storage; }

  void find_lives() {
    std::map<int, int> num_backward;  // backward nodes so far, by chunk
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      for (const auto* ids : {&node.inputs, &node.outputs}) {
        for (const ValueId id : *ids) {
          if (id == kNoValue) continue;
          Life& life = lives_[storage_of(id)];
          if (life.chunk < 0) life.chunk = node.chunk;
          life.stays |= node.phase == Phase::kUpdate || node.chunk != life.chunk;
          if (node.phase == Phase::kForward) {
            life.last_forward = static_cast<int>(i);
          } else if (life.first_backward < 0) {
            life.first_backward = static_cast<int>(i);
            life.num_before = num_backward[node.chunk];
          }
        }
      }
      if (node.phase != Phase::kBackward) continue;
      ++num_backward[node.chunk];
      if (node.op == &kReceive) waiting_.insert(node.chunk);
    }
    for (const ValueId id : graph_.outputs()) lives_[storage_of(id)].stays = true;
  }

  bool goes(int storage) const {
    const Storage& memory = assignment_.storages[storage];
    const Life& life = lives_[storage];
    return memory.role == Role::kActivation && memory.num_bytes() >= options_.least_bytes &&
           !life.stays && life.last_forward >= 0 && life.first_backward >= 0 &&
           (life.num_before >= options_.num_soon || waiting_.contains(life.chunk));
  }

  // One copy for each value that backward reads; views of the same memory share one.
  void find_copies() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].phase != Phase::kBackward) continue;
      for (const ValueId id : nodes_[i].inputs) {
        if (id == kNoValue || copy_of_.contains(id) || !goes(storage_of(id))) continue;
        // What backward itself wrote in place over a fetched value is not a forward value.
        if (nodes_[graph_.value(id).producer].phase != Phase::kForward) continue;
        const auto same = std::find_if(
            copies_.begin(), copies_.end(),
            [&](const OffloadedValue& copy) { return shows_the_same(copy.value, id); });
        copy_of_[id] = static_cast<size_t>(same - copies_.begin());
        if (same == copies_.end()) copies_.push_back({id, static_cast<int>(i)});
      }
    }
  }

  bool shows_the_same(ValueId a, ValueId b) const {
    const StoragePlace &x = assignment_.places[a], &y = assignment_.places[b];
    return x.storage == y.storage && x.row == y.row && x.col == y.col &&
           graph_.type(a) == graph_.type(b);
  }

  void place_copies() {
    std::map<int, AtNode> stashes, fetches;  // by chunk
    for (size_t i = 0; i < copies_.size(); ++i) {
      const int last_forward = lives_[storage_of(copies_[i].value)].last_forward;
      stashes[nodes_[last_forward].chunk][last_forward].push_back(i);
      fetches[nodes_[copies_[i].used].chunk][copies_[i].used].push_back(i);
      begins_behind_[last_forward].push_back(i);
      ends_before_[copies_[i].used].push_back(i);
    }
    for (const auto& [chunk, places] : stashes) {
      const int end = last_node(Phase::kForward, chunk);
      for (auto place = places.begin(); place != places.end(); ++place) {
        Copies& copies = ends_behind_[ahead_of(place, places.end(), end)];
        copies.insert(copies.end(), place->second.begin(), place->second.end());
      }
    }
    for (const auto& [chunk, places] : fetches) {
      const int begin = first_node(Phase::kBackward, chunk);
      for (auto place = places.rbegin(); place != places.rend(); ++place) {
        Copies& copies = begins_before_[ahead_of(place, places.rend(), begin)];
        copies.insert(copies.begin(), place->second.begin(),
                      place->second.end());  // in the order of use
      }
    }
  }

  // The node of the place kAhead places further on, or `last` if there is none.
  template <typename Iterator>
  static int ahead_of(Iterator place, Iterator end, int last) {
    for (size_t i = 0; i < kAhead; ++i) {
      if (++place == end) return last;
    }
    return place->first;
  }
  int first_node(Phase phase, int chunk) const {
    return find_node(nodes_.begin(), nodes_.end(), phase, chunk) - nodes_.begin();
  }
  int last_node(Phase phase, int chunk) const {
    return nodes_.rend() - find_node(nodes_.rbegin(), nodes_.rend(), phase, chunk) - 1;
  }
  template <typename Iterator>
  static Iterator find_node(Iterator begin, Iterator end, Phase phase, int chunk) {
    return std::find_if(
        begin, end, [&](const Node& node) { return node.phase == phase && node.chunk == chunk; });
  }

  void write() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Node node = nodes_[i];
      const int index = static_cast<int>(i);
      for (const size_t copy : begins_before_[index]) begin_fetch(copy, node);
      for (const size_t copy : ends_before_[index]) finish_fetch(copy, node);
      if (node.phase == Phase::kBackward) {
        for (ValueId& id : node.inputs) {
          if (const auto found = copy_of_.find(id); found != copy_of_.end()) {
            id = copies_[found->second].fetched;
          }
        }
      }
      order_.push_back(node);
      for (const size_t copy : begins_behind_[index]) begin_stash(copy, node);
      for (const size_t copy : ends_behind_[index]) finish_stash(copy, node);
    }
    graph_.replace_nodes(std::move(order_));
  }

  void begin_stash(size_t index, const Node& beside) {
    OffloadedValue& copy = copies_[index];
    append_node(beside, [&] {
      copy.stashed = stash(graph_, copy.value, channel(index), "stash." + name(copy));
    });
  }
  void finish_stash(size_t index, const Node& beside) {
    append_node(beside, [&] { end_stash(graph_, copies_[index].value, channel(index)); });
  }
  void begin_fetch(size_t index, const Node& beside) {
    OffloadedValue& copy = copies_[index];
    append_node(beside, [&] {
      copy.fetched = fetch(graph_, copy.stashed, way_back(index), "begin_fetch." + name(copy));
    });
  }
  void finish_fetch(size_t index, const Node& beside) {
    OffloadedValue& copy = copies_[index];
    append_node(beside, [&] {
      copy.fetched = end_fetch(graph_, copy.fetched, way_back(index), "fetch." + name(copy));
    });
  }

  static int64_t channel(size_t copy) { return kFirstChannel + static_cast<int64_t>(copy); }
  int64_t way_back(size_t copy) const { return channel(copies_.size() + copy); }
  const std::string& name(const OffloadedValue& copy) const {
    return graph_.value(copy.value).name;
  }

  // The nodes get the scope, phase and chunk of `beside`.
  template <typename Append>
  void append_node(const Node& beside, const Append& append) {
    graph_.set_scope(beside.scope);
    graph_.set_phase(beside.phase);
    graph_.set_chunk(beside.chunk);
    append();
    order_.push_back(graph_.nodes().back());
  }

  Graph& graph_;
  const OffloadOptions options_;
  const std::vector<Node> nodes_;
  const StorageAssignment assignment_;
  std::vector<Life> lives_;  // by storage
  std::set<int> waiting_;    // chunks whose backward first waits for another stage
  std::vector<OffloadedValue> copies_;
  std::map<ValueId, size_t> copy_of_;
  AtNode begins_behind_, ends_behind_, begins_before_, ends_before_;
  std::vector<Node> order_;
};

}  // namespace

void offload(Graph& graph, const OffloadOptions& options) { Offloader(graph, options).run(); }

}  // namespace skein
