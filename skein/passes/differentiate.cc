#include "skein/passes/differentiate.h"

#include <map>

#include "skein/ir/backward.h"
#include "skein/ops/add/add.h"

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
      node_.op->backward(*this);
    }
    graph_.set_scope("");
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
    total = total == kNoValue ? grad : add(graph_, total, grad, "d." + graph_.value(id).name);
  }

  bool is_parameter(int index) const override {
    return graph_.value(input(index)).role == Role::kParameter;
  }

  ValueId gradient_sum(int index) override {
    const ValueId parameter = input(index);
    const auto found = sums_.find(parameter);
    if (found != sums_.end()) return found->second;
    TensorType type = graph_.type(parameter);
    type.dtype = DType::kF32;
    for (size_t axis = 0; axis < type.placements.size(); ++axis) {
      if (shards_batch(axis) && type.placements[axis].is_replicated()) {
        type.placements[axis] = Placement::partial();
      }
    }
    const ValueId sum =
        graph_.add_input(Role::kGradient, "grad." + graph_.value(parameter).name, type);
    return sums_[parameter] = sum;
  }

  void set_gradient_sum(int index, ValueId sum) override { sums_[input(index)] = sum; }

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

  bool shards_batch(size_t axis) const {
    for (const Value& value : graph_.values()) {
      if (value.role == Role::kInput && value.type.dtype == DType::kI32 &&
          value.type.placements[axis].is_sharded()) {
        return true;
      }
    }
    return false;
  }

  Graph& graph_;
  Node node_;
  std::vector<bool> depends_;  // by value: depends on a parameter
  std::map<ValueId, ValueId> grads_;
  std::map<ValueId, ValueId> sums_;
};

}  // namespace

void differentiate(Graph& graph, ValueId loss) { Differentiator(graph, loss).run(); }

}  // namespace skein
