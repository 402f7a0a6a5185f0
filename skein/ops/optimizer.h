// An optimizer: what it keeps of each parameter, and how its update enters a graph.
//
// An optimizer is the folder of its op and one line of optimizers.def, `SKEIN_OPTIMIZER(<folder>)`;
// the folder defines `const Optimizer& <folder>_optimizer()`. Tensors of its state are named
// "<row>.<parameter>" in graphs, programs and checkpoints, "exp_avg.layers.0.mlp.up_proj.weight".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/ir/graph.h"

namespace skein {

// A tensor of the shape of its parameter.
struct StateRow {
  std::string_view name;
  bool is_moment = true;  // of the dtype of precision.moments; otherwise f32
};

// The fp32 copy of a bf16 weight, which every optimizer keeps if precision.mode asks for it.
inline constexpr StateRow kMasterRow = {"master", false};

std::string state_name(const StateRow& row, std::string_view parameter);

struct StateName {
  const StateRow* row;
  std::string parameter;
};
// Nothing if `name` is not that of a tensor of any optimizer's state.
std::optional<StateName> parse_state_name(std::string_view name);

// One parameter in an update phase.
struct OptimizedParameter {
  std::string name;
  ValueId weight = kNoValue;
  ValueId gradient = kNoValue;  // the rank's part, summed over ranks
  double weight_decay = 0;
};

struct OptimizerSettings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-5;
  double momentum = 0.95;
  DType moments = DType::kF32;
  bool keeps_master = false;         // of bf16 weights
  bool stochastic_rounding = false;  // of bf16 weights without one
  uint64_t seed = 1;
};

// What the updates of all parameters share.
class UpdatePhase {
 public:
  // `scale` f32[1] multiplies gradients; learning_rate f32[1]; step i32[1], 1 at the first update.
  // Over `state_axes` a rank has a range of gradients and of state (ZeRO).
  UpdatePhase(Graph& graph, const OptimizerSettings& settings, std::vector<int> state_axes,
              ValueId scale, ValueId learning_rate, ValueId step);

  Graph& graph() { return graph_; }
  const OptimizerSettings& settings() const { return settings_; }
  const std::vector<int>& state_axes() const { return state_axes_; }
  ValueId scale() const { return scale_; }
  ValueId learning_rate() const { return learning_rate_; }
  ValueId step() const { return step_; }

  // Adds the graph's input for a row of the parameter's state.
  ValueId state(const OptimizedParameter& parameter, const StateRow& row);
  // The master copy; kNoValue if none is kept.
  ValueId master(const OptimizedParameter& parameter);

 private:
  Graph& graph_;
  const OptimizerSettings& settings_;
  const std::vector<int> state_axes_;
  const ValueId scale_, learning_rate_, step_;
};

struct Optimizer {
  std::string_view name;  // of optimizer.name
  std::vector<StateRow> state;
  // Its first op that reads a gradient, the operand that is the gradient, and that the op leaves
  // zero unless it has the attr kKeepsGradient.
  const OpDef* op = nullptr;
  int gradient = 0;
  // Whether it updates matrices of layers alone; other parameters are AdamW's.
  bool only_matrices = false;
  bool has_momentum = false;  // reads OptimizerSettings::momentum
  // How many of the ranks that share the state divide whole matrices among them, at most.
  // Parameters are then appended in groups of a matrix for each. 0: parts of matrices suffice.
  int64_t most_owners = 0;
  // Appends the updates of parameters whose gradients travel together; returns their new weights.
  std::vector<ValueId> (*append)(UpdatePhase& phase,
                                 std::span<const OptimizedParameter> parameters);
};

std::vector<const Optimizer*> all_optimizers();
// Throws Error{kUsage} with the names that there are.
const Optimizer& find_optimizer(std::string_view name);
// The optimizer whose op it is; null for other ops.
const Optimizer* optimizer_of(const OpDef& op);

inline constexpr std::string_view kKeepsGradient = "keeps_gradient";
inline bool keeps_gradient(const Attrs& attrs) {
  return attrs.has(kKeepsGradient) && attrs.flag(kKeepsGradient);
}

}  // namespace skein
