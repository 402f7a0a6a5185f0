#include "skein/passes/hoist_transient.h"

namespace skein {
namespace {

class Hoister {
 public:
  explicit Hoister(const Graph& graph)
      : graph_(graph), emitted_(graph.nodes().size()), lazy_(graph.nodes().size()) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      if (node.phase == Phase::kForward) lazy_[i] = makes_transient(node);
      if (node.phase == Phase::kBackward && reads_transient(node)) {
        consumers_.push_back(static_cast<int>(i));
      }
    }
  }

  std::vector<Node> run() {
    const std::vector<Node>& nodes = graph_.nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (lazy_[i]) continue;
      if (nodes[i].phase != Phase::kForward || needs_lazy(nodes[i])) flush();
      emit(static_cast<int>(i), nodes[i].phase);
    }
    flush();
    return std::move(order_);
  }

 private:
  bool makes_transient(const Node& node) const {
    for (const ValueId id : node.outputs) {
      if (graph_.value(id).transient) return true;
    }
    return false;
  }
  bool reads_transient(const Node& node) const {
    for (const ValueId id : node.inputs) {
      if (id != kNoValue && graph_.value(id).transient) return true;
    }
    return false;
  }
  bool needs_lazy(const Node& node) const {
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      const int producer = graph_.value(id).producer;
      if (producer >= 0 && lazy_[producer] && !emitted_[producer]) return true;
    }
    return false;
  }

  // Emits one token block at a time: each consumer pulls in the producers of its own block.
  void flush() {
    if (flushed_) return;
    flushed_ = true;
    for (const int consumer : consumers_) emit(consumer, Phase::kForward);
    for (size_t i = 0; i < lazy_.size(); ++i) {
      if (lazy_[i]) emit(static_cast<int>(i), Phase::kForward);
    }
  }

  void emit(int index, Phase phase) {
    if (emitted_[index]) return;
    emitted_[index] = true;
    Node node = graph_.nodes()[index];
    for (const ValueId id : node.inputs) {
      if (id != kNoValue && graph_.value(id).producer >= 0) emit(graph_.value(id).producer, phase);
    }
    node.phase = phase;
    order_.push_back(std::move(node));
  }

  const Graph& graph_;
  std::vector<bool> emitted_;
  std::vector<bool> lazy_;  // forward nodes that make transient values
  std::vector<int> consumers_;
  std::vector<Node> order_;
  bool flushed_ = false;
};

}  // namespace

void hoist_transient(Graph& graph) { graph.replace_nodes(Hoister(graph).run()); }

}  // namespace skein
