#include "skein/passes/use_fp8.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear.h"

namespace skein {
namespace {

int num_parts(const Node& node) { return static_cast<int>(node.attrs.integer("parts")); }

std::vector<ValueId> gradients_of(const Node& node) {
  return {node.inputs.begin(), node.inputs.begin() + num_parts(node)};
}

// linear_dw, with what linear_dx of the same gradients makes.
Node joined(const Node& dw, const Node& dx) {
  Node node = dw;
  node.op = &kLinearDxDw;
  node.inputs = dx.inputs;
  node.inputs.insert(node.inputs.end(), dw.inputs.begin() + num_parts(dw), dw.inputs.end());
  node.outputs = dx.outputs;
  node.outputs.insert(node.outputs.end(), dw.outputs.begin(), dw.outputs.end());
  return node;
}

// Whether the op can find the largest magnitude of the first of these (skein/ops/largest.h).
bool can_find_largest(const Node& node, std::span<const ValueId> operands) {
  const auto count = static_cast<size_t>(node.op->largest_outputs);
  return count > 0 && operands.size() >= count &&
         std::equal(node.outputs.begin(), node.outputs.begin() + count, operands.begin());
}

// Gives each product the largest magnitudes of its operands and, where they are kept, its rounded
// weights.
class Rounder {
 public:
  Rounder(Graph& graph, const Fp8Options& options) : graph_(graph), options_(options) {}

  std::vector<Node> run(const std::vector<Node>& nodes) {
    for (Node node : nodes) {
      if (is_fp8(node.attrs)) add_operands(node);
      for (const ValueId id : node.outputs) maker_of_[id] = order_.size();
      order_.push_back(std::move(node));
    }
    return std::move(order_);
  }

 private:
  struct Fp8Operand {
    ValueId largest = kNoValue;
    ValueId rounded = kNoValue;  // where it is kept
  };

  void add_operands(Node& node) {
    ValueId rounded = kNoValue;
    for (const Fp8Group& group : fp8_groups(node.op->name, num_parts(node))) {
      const auto begin = node.inputs.begin() + group.begin;
      const std::vector<ValueId> operands(begin, begin + group.count);
      const auto [found, is_new] = found_.try_emplace(operands);
      if (is_new) found->second = can_keep(operands) ? kept(operands) : looked_for(operands, node);
      node.inputs.push_back(found->second.largest);
      if (found->second.rounded != kNoValue) rounded = found->second.rounded;
    }
    if (rounded == kNoValue) return;
    node.attrs.set("kept_weights", true);
    node.inputs.push_back(rounded);
  }

  // By the ops that make operands where these can, and before `reader` by one that looks through
  // the others.
  Fp8Operand looked_for(const std::vector<ValueId>& operands, const Node& reader) {
    graph_.set_scope(reader.scope);
    graph_.set_phase(reader.phase);
    std::vector<ValueId> parts;
    for (size_t i = 0, magnitudes = 0; i < operands.size();) {
      const std::span<const ValueId> left(operands.begin() + i, operands.end());
      const auto maker = maker_of_.find(left.front());
      if (magnitudes == kMaxFp8Groups || maker == maker_of_.end() ||
          !can_find_largest(order_[maker->second], left) ||
          chunk_of(order_[maker->second]) != chunk_of(reader)) {
        parts.push_back(operands[i++]);
        continue;
      }
      parts.push_back(found_by(order_[maker->second]));
      i += static_cast<size_t>(order_[maker->second].op->largest_outputs);
      ++magnitudes;
    }
    if (parts.size() == 1 && graph_.type(parts.front()).dtype == DType::kF32) {
      return {parts.front()};
    }
    const ValueId largest = add_largest(parts, operands.front());
    order_.push_back(graph_.nodes().back());
    order_.back().chunk = reader.chunk;
    return {largest};
  }

  ValueId add_largest(const std::vector<ValueId>& of, ValueId first) {
    return graph_.add1(kFp8Largest, of, {}, "largest." + graph_.value(first).name);
  }

  // One more output of the node, in place of what a node of its own would find.
  ValueId found_by(Node& maker) {
    if (maker.attrs.has("largest")) return maker.outputs.back();
    const auto begin = maker.outputs.begin();
    const std::vector<ValueId> made(begin, begin + maker.op->largest_outputs);
    maker.attrs.set("largest", true);
    maker.outputs.push_back(add_largest(made, made.front()));
    return maker.outputs.back();
  }

  int chunk_of(const Node& node) const {
    return options_.chunk_of ? options_.chunk_of(node.scope) : 0;
  }

  std::string name_of(const std::vector<ValueId>& weights) const {
    return "rounded." + graph_.value(weights.front()).name;
  }

  bool can_keep(const std::vector<ValueId>& operands) const {
    if (!options_.keep_weights || graph_.find(name_of(operands)) != kNoValue) return false;
    return std::all_of(operands.begin(), operands.end(), [&](ValueId id) {
      if (graph_.value(id).role != Role::kParameter) return false;
      const Shape local = graph_.type(id).local_shape(graph_.mesh());
      return local.dim(0) % kFp8Multiple == 0 && local.dim(1) % kFp8Multiple == 0;
    });
  }

  Fp8Operand kept(const std::vector<ValueId>& weights) {
    int64_t elements = 0;
    for (const ValueId id : weights) {
      elements += graph_.type(id).local_shape(graph_.mesh()).num_elements();
    }
    const auto input = [&](const std::string& name, DType dtype, const Shape& shape) {
      return graph_.add_input(Role::kRounded, name,
                              TensorType::replicated(dtype, shape, graph_.mesh()));
    };
    const std::string name = name_of(weights);
    return {input("largest." + name, DType::kF32, Shape{1}),
            input(name, DType::kBF16, Shape{elements})};
  }

  Graph& graph_;
  const Fp8Options& options_;
  std::vector<Node> order_;
  std::map<ValueId, size_t> maker_of_;  // where in order_
  std::map<std::vector<ValueId>, Fp8Operand> found_;
};

}  // namespace

void use_fp8(Graph& graph, const Fp8Options& options) {
  struct Dw {
    int index;    // in the graph
    size_t node;  // among `nodes`
  };
  std::vector<Node> nodes;
  std::map<std::vector<ValueId>, Dw> dw_of;  // by gradients
  for (int index = 0; index < static_cast<int>(graph.nodes().size()); ++index) {
    Node node = graph.nodes()[index];
    if (node.op->can_use_fp8 && node.scope.is_layer()) {
      node.attrs.set("fp8", true);
      if (options.fast_accumulation && node.op == &kLinear)
        node.attrs.set("fast_accumulation", true);
      if (node.op == &kLinearDw) dw_of[gradients_of(node)] = {index, nodes.size()};
      const auto found = node.op == &kLinearDx ? dw_of.find(gradients_of(node)) : dw_of.end();
      const auto is_there = [&](ValueId id) {
        return graph.value(id).producer < found->second.index;
      };
      if (found != dw_of.end() && std::all_of(node.inputs.begin(), node.inputs.end(), is_there)) {
        nodes[found->second.node] = joined(nodes[found->second.node], node);
        continue;
      }
    }
    nodes.push_back(std::move(node));
  }
  graph.replace_nodes(Rounder(graph, options).run(nodes));
}

int64_t num_rounding_products(const Graph& training) {
  return std::count_if(training.nodes().begin(), training.nodes().end(), [](const Node& node) {
    return node.op == &kLinear && node.phase == Phase::kForward && is_fp8(node.attrs) &&
           !has_kept_weights(node.attrs, node.op->name);
  });
}

Graph weights_to_round(const Graph& training) {
  Graph graph(training.mesh());
  graph.set_phase(Phase::kUpdate);
  const auto input = [&](ValueId id) {
    const Value& value = training.value(id);
    const ValueId known = graph.find(value.name);
    return known != kNoValue ? known : graph.add_input(value.role, value.name, value.type);
  };
  std::set<ValueId> done;
  for (const Node& node : training.nodes()) {
    if (!has_kept_weights(node.attrs, node.op->name)) continue;
    const ValueId rounded = node.inputs.back();
    if (!done.insert(rounded).second) continue;
    const Fp8Group weights = fp8_groups(node.op->name, num_parts(node))[kFp8Weights];
    std::vector<ValueId> inputs;
    for (int i = 0; i < weights.count; ++i) {
      inputs.push_back(input(node.inputs[static_cast<size_t>(weights.begin + i)]));
    }
    const int largest = fp8_first_largest(node.op->name, node.attrs, node.inputs.size());
    for (const ValueId id : {node.inputs[static_cast<size_t>(largest + kFp8Weights)], rounded}) {
      inputs.push_back(input(id));
    }
    graph.set_scope(node.scope);
    graph.add(kRoundWeights, inputs, {},
              {graph.value(inputs[inputs.size() - 2]).name, graph.value(inputs.back()).name});
  }
  return graph;
}

}  // namespace skein
