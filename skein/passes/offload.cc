#include "skein/passes/offload.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "skein/ir/verify.h"
#include "skein/ops/offload/offload.h"
#include "skein/ops/pipeline/pipeline.h"
#include "skein/passes/storage.h"

namespace skein {
namespace {

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
    write();
    verify(graph_, "offload");
  }

 private:
  struct Life {
    int last_forward = -1;    // node
    int first_backward = -1;  // node that reads it
    int num_before = 0;       // nodes of the chunk's backward before that
    int chunk = -1;
    bool stays = false;
  };
  struct Copy {
    ValueId value;
    int before;  // node
    ValueId stashed = kNoValue;
    ValueId fetched = kNoValue;
  };

  int storage_of(ValueId id) const { return assignment_.places.at(id).storage; }

  void find_lives() {
    std::map<int, int> num_backward;  // nodes so far, by chunk
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

  // One for each value that backward reads; views of the same memory are the same value.
  void find_copies() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].phase != Phase::kBackward) continue;
      for (const ValueId id : nodes_[i].inputs) {
        if (id == kNoValue || copy_of_.contains(id) || !goes(storage_of(id))) continue;
        // What backward itself wrote over a fetched value is no forward value.
        if (nodes_[graph_.value(id).producer].phase != Phase::kForward) continue;
        const auto same = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
          return shows_the_same(copy.value, id);
        });
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

  void write() {
    std::vector<Node> order;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int index = static_cast<int>(i);
      Node node = nodes_[i];
      for (Copy& copy : copies_) {
        if (copy.before != index) continue;
        copy.fetched = add(node, Phase::kBackward, [&] {
          return fetch(graph_, copy.stashed, "fetch." + graph_.value(copy.value).name);
        });
        order.push_back(graph_.nodes().back());
      }
      if (node.phase == Phase::kBackward) {
        for (ValueId& id : node.inputs) {
          if (const auto found = copy_of_.find(id); found != copy_of_.end()) {
            id = copies_[found->second].fetched;
          }
        }
      }
      order.push_back(node);
      for (Copy& copy : copies_) {
        if (lives_[storage_of(copy.value)].last_forward != index) continue;
        copy.stashed = add(node, Phase::kForward, [&] {
          return stash(graph_, copy.value, "stash." + graph_.value(copy.value).name);
        });
        order.push_back(graph_.nodes().back());
      }
    }
    graph_.replace_nodes(std::move(order));
  }

  // Beside `node`: in its scope and chunk.
  template <typename Append>
  ValueId add(const Node& node, Phase phase, const Append& append) {
    graph_.set_scope(node.scope);
    graph_.set_phase(phase);
    graph_.set_chunk(node.chunk);
    return append();
  }

  Graph& graph_;
  const OffloadOptions options_;
  const std::vector<Node> nodes_;
  const StorageAssignment assignment_;
  std::vector<Life> lives_;  // by storage
  std::set<int> waiting_;    // chunks whose backward begins when another stage is done
  std::vector<Copy> copies_;
  std::map<ValueId, size_t> copy_of_;
};

}  // namespace

void offload(Graph& graph, const OffloadOptions& options) { Offloader(graph, options).run(); }

}  // namespace skein
