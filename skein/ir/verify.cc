#include "skein/ir/verify.h"

#include <unordered_set>
#include <vector>

namespace skein {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view pass) : graph_(graph), pass_(pass) {
    defined_.resize(graph.values().size(), false);
    overwritten_by_.resize(graph.values().size(), -1);
  }

  void run() {
    check_names();
    define_inputs();
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      index_ = static_cast<int>(index);
      check_node(graph_.nodes()[index]);
    }
    for (const ValueId output : graph_.outputs()) {
      if (!defined_.at(output))
        reject("graph output '{}' is never defined", graph_.value(output).name);
      if (overwritten_by_[output] >= 0) {
        reject("graph output '{}' is overwritten by node {}", graph_.value(output).name,
               overwritten_by_[output]);
      }
    }
  }

 private:
  template <typename... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    const std::string message = fmt::format(format, std::forward<Args>(args)...);
    if (index_ < 0) fail(ErrorCode::kInternal, "after {}: {}", pass_, message);
    fail(ErrorCode::kInternal, "after {}: node {} [{}]: {}", pass_, index_,
         graph_.nodes()[index_].op->name, message);
  }

  void check_names() const {
    std::unordered_set<std::string_view> names;
    for (const Value& value : graph_.values()) {
      if (!names.insert(value.name).second) reject("two values are named '{}'", value.name);
    }
  }

  void define_inputs() {
    std::vector<bool> produced(defined_.size(), false);
    for (const Node& node : graph_.nodes()) {
      for (const ValueId output : node.outputs) {
        if (produced.at(output)) reject("'{}' is produced twice", graph_.value(output).name);
        produced[output] = true;
      }
    }
    for (size_t id = 0; id < defined_.size(); ++id) {
      defined_[id] = !produced[id] && graph_.values()[id].role != Role::kActivation;
    }
  }

  void check_node(const Node& node) {
    if (node.phase < phase_) {
      reject("phase {} after {}", phase_name(node.phase), phase_name(phase_));
    }
    phase_ = node.phase;
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) check_use(node, input);
    }
    const std::vector<TensorType> types = node.op->infer(graph_.call(node));
    if (types.size() != node.outputs.size()) {
      reject("{} outputs, the op infers {}", node.outputs.size(), types.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const Value& output = graph_.value(node.outputs[i]);
      if (!(output.type == types[i])) {
        reject("'{}' is {}, the op infers {}", output.name, output.type.to_string(graph_.mesh()),
               types[i].to_string(graph_.mesh()));
      }
      defined_[node.outputs[i]] = true;
    }
    if (node.op->layout != nullptr) check_aliases(node);
  }

  void check_use(const Node& node, ValueId id) const {
    const Value& value = graph_.value(id);
    if (!defined_.at(id)) reject("'{}' is used before it is defined", value.name);
    if (overwritten_by_[id] >= 0) {
      reject("'{}' is read after node {} [{}] overwrote it", value.name, overwritten_by_[id],
             graph_.nodes()[overwritten_by_[id]].op->name);
    }
    if (value.transient && value.producer >= 0 &&
        graph_.nodes()[value.producer].phase != node.phase) {
      reject("transient '{}' outlives its phase", value.name);
    }
  }

  void check_aliases(const Node& node) {
    for (const Alias& alias : node.op->layout(graph_.call(node)).aliases) {
      const ValueId input = node.inputs.at(alias.input);
      if (!alias.in_place || input == kNoValue) continue;
      const Role role = graph_.value(input).role;
      if (role == Role::kInput && graph_.type(input).dtype == DType::kI32) {
        reject("overwrites the input '{}'", graph_.value(input).name);
      }
      if ((role == Role::kParameter || role == Role::kOptimizer) && node.phase != Phase::kUpdate) {
        reject("overwrites the {} '{}' before the update", role_name(role),
               graph_.value(input).name);
      }
      overwritten_by_[input] = index_;
    }
  }

  const Graph& graph_;
  std::string_view pass_;
  std::vector<bool> defined_;
  std::vector<int> overwritten_by_;
  Phase phase_ = Phase::kForward;
  int index_ = -1;
};

}  // namespace

void verify(const Graph& graph, std::string_view after_pass) { Verifier(graph, after_pass).run(); }

}  // namespace skein
