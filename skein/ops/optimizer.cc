#include "skein/ops/optimizer.h"

#include <utility>

#include "skein/base/error.h"

namespace skein {

#define SKEIN_OPTIMIZER(folder) const Optimizer& folder##_optimizer();
#include "skein/ops/optimizers.def"
#undef SKEIN_OPTIMIZER

std::vector<const Optimizer*> all_optimizers() {
  return {
#define SKEIN_OPTIMIZER(folder) &folder##_optimizer(),
#include "skein/ops/optimizers.def"
#undef SKEIN_OPTIMIZER
  };
}

const Optimizer& find_optimizer(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Optimizer* one : all_optimizers()) {
    if (one->name == name) return *one;
    names.push_back(one->name);
  }
  fail(ErrorCode::kUsage, "optimizer.name is '{}': expected {}", name, fmt::join(names, " or "));
}

const Optimizer* optimizer_of(const OpDef& op) {
  for (const Optimizer* one : all_optimizers()) {
    if (&op == one->op) return one;
  }
  return nullptr;
}

std::string state_name(const StateRow& row, std::string_view parameter) {
  return fmt::format("{}.{}", row.name, parameter);
}

std::optional<StateName> parse_state_name(std::string_view name) {
  const auto parsed = [&](const StateRow& row) -> std::optional<StateName> {
    const size_t size = row.name.size();
    if (!name.starts_with(row.name) || name.size() <= size + 1 || name[size] != '.') return {};
    return StateName{&row, std::string(name.substr(size + 1))};
  };
  for (const Optimizer* one : all_optimizers()) {
    for (const StateRow& row : one->state) {
      if (const auto found = parsed(row)) return found;
    }
  }
  return parsed(kMasterRow);
}

UpdatePhase::UpdatePhase(Graph& graph, const OptimizerSettings& settings,
                         std::vector<int> state_axes, ValueId scale, ValueId learning_rate,
                         ValueId step)
    : graph_(graph),
      settings_(settings),
      state_axes_(std::move(state_axes)),
      scale_(scale),
      learning_rate_(learning_rate),
      step_(step) {}

ValueId UpdatePhase::state(const OptimizedParameter& parameter, const StateRow& row) {
  TensorType type = graph_.type(parameter.weight);
  type.dtype = row.is_moment ? settings_.moments : DType::kF32;
  for (const int axis : state_axes_) type.placements[axis] = Placement::flat();
  return graph_.add_input(Role::kOptimizer, state_name(row, parameter.name), std::move(type));
}

ValueId UpdatePhase::master(const OptimizedParameter& parameter) {
  return settings_.keeps_master ? state(parameter, kMasterRow) : kNoValue;
}

}  // namespace skein
