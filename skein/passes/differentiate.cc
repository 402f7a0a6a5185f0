#include "skein/passes/differentiate.h"

#include <map>

#include "skein/ir/backward.h"
#include "skein/ir/gradient_name.h"
#include "skein/ops/add/add.h"
#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

bool is_real(DType dtype) { return dtype != DType::kI32; }

class Differentiator final : public BackwardContext {
 public:
  Differentiator(Graph& graph, ValueId loss) : graph_(graph) {
    find_dependents();
    if (!depends_[loss]) fail(ErrorCode::kInvalid, "the loss depends on no parameter");
    grads_[loss] = kUnitGrad;
  }

  void run() {
    graph_.set_phase(Phase::kBackward);
    for (int index = static_cast<int>(graph_.nodes().size()) - 1; index >= 0; --index) {
      node_ = graph_.nodes()[index];  // a copy: adding nodes moves them
      bool reached = false;
      for (const ValueId output : node_.outputs) reached = reached || grads_.contains(output);
      if (!reached) continue;
      if (node_.op->backward == nullptr) {
        fail(ErrorCode::kInvalid, "[{}] has no derivative, and the loss depends on it ({})",
             node_.op->name, graph_.value(node_.outputs.front()).name);
      }
      graph_.set_scope(node_.scope);
      if (!node_.op->passes_pending) {
        for (const ValueId output : node_.outputs) settle(output);
      }
      node_.op->backward(*this);
    }
    graph_.set_scope({});
  }

  Graph& graph() override { return graph_; }
  const Node& node() const override { return node_; }

  ValueId output_grad(int index) const override {
    const auto found = grads_.find(node_.outputs.at(index));
    return found == grads_.end() ? kNoValue : found->second;
  }

  bool needs_grad(int index) const override {
    const ValueId id = input(index);
    return id != kNoValue && depends_[id] && !is_parameter(index);
  }

  void add_input_grad(int index, ValueId grad) override {
    const ValueId id = input(index);
    if (id == kNoValue || !depends_.at(id)) return;
    ValueId& total = grads_.try_emplace(id, kNoValue).first->second;
    if (total == kNoValue || grad == kUnitGrad) {
      total = grad;
      return;
    }
    if (!(graph_.type(total).placements == graph_.type(grad).placements)) {
      total = redistribute_all(graph_, total, placed_as(id));
      grad = redistribute_all(graph_, grad, placed_as(id));
    }
    total = add(graph_, total, grad, "d." + graph_.value(id).name);
  }

  bool is_parameter(int index) const override {
    return graph_.value(input(index)).role == Role::kParameter;
  }

  ValueId gradient_sum(int index, ValueId term) override {
    const ValueId parameter = input(index);
    const auto found = sums_.find({parameter, node_.scope});
    if (found != sums_.end()) return found->second;
    TensorType type = graph_.type(parameter);
    type.dtype = DType::kF32;
    const Placements& of_term = graph_.type(term).placements;
    for (size_t axis = 0; axis < type.placements.size(); ++axis) {
      const bool pending = of_term[axis].is_sharded() || of_term[axis].is_partial();
      if (pending && type.placements[axis].is_replicated()) {
        type.placements[axis] = Placement::partial();
      }
    }
    const ValueId sum = graph_.add_input(Role::kGradient, sum_name(parameter), type);
    return sums_[{parameter, node_.scope}] = sum;
  }

  void set_gradient_sum(int index, ValueId sum) override {
    sums_[{input(index), node_.scope}] = sum;
  }

 private:
  void find_dependents() {
    for (const Value& value : graph_.values()) depends_.push_back(value.role == Role::kParameter);
    for (const Node& node : graph_.nodes()) {
      bool depends = false;
      for (const ValueId id : node.inputs) depends = depends || (id != kNoValue && depends_[id]);
      for (const ValueId id : node.outputs) {
        depends_[id] = depends && is_real(graph_.type(id).dtype);
      }
    }
  }

  // The placements of a value's gradient once no sum is pending.
  Placements placed_as(ValueId id) const {
    Placements placements = graph_.type(id).placements;
    for (Placement& placement : placements) {
      if (placement.is_partial()) placement = Placement::replicated();
    }
    return placements;
  }

  void settle(ValueId id) {
    const auto found = grads_.find(id);
    if (found == grads_.end() || found->second < 0) return;
    found->second = redistribute_all(graph_, found->second, placed_as(id));
  }

  // If several scopes use the parameter (tied embeddings), each but the first has a sum of its own:
  // the scopes may lie on different pipeline stages, and the order of the sum must not depend on
  // that.
  std::string sum_name(ValueId parameter) const {
    const std::string& name = graph_.value(parameter).name;
    for (const Node& node : graph_.nodes()) {
      if (node.phase != Phase::kForward) break;
      for (const ValueId id : node.inputs) {
        if (id == parameter)
          return gradient_name(name, node.scope == node_.scope ? "" : node_.scope.name);
      }
    }
    return gradient_name(name);
  }

  Graph& graph_;
  Node node_;
  std::vector<bool> depends_;  // by value: depends on a parameter
  std::map<ValueId, ValueId> grads_;
  std::map<std::pair<ValueId, Scope>, ValueId> sums_;  // by parameter and scope
};

}  // namespace

void differentiate(Graph& graph, ValueId loss) { Differentiator(graph, loss).run(); }

}  // namespace skein
