#include "skein/config/parameter_rules.h"

#include <map>

namespace skein {
namespace {

bool decays(const OptimizerConfig& optimizer, const ParameterSpec& parameter) {
  if (parameter.is_norm) return optimizer.decay_norms;
  if (parameter.is_bias) return optimizer.decay_biases;
  if (parameter.is_embedding) return optimizer.decay_embeddings;
  return true;
}

}  // namespace

DType moments_dtype(const PrecisionConfig& precision) {
  return precision.moments == "bf16" ? DType::kBF16 : DType::kF32;
}

ParameterRule parameter_rule(const OptimizerConfig& optimizer, const ParameterSpec& parameter) {
  const Optimizer* chosen = &find_optimizer(optimizer.name);
  const bool is_matrix = parameter.layer >= 0 && parameter.shape.rank() == 2;
  if (chosen->only_matrices && !is_matrix) chosen = &adamw_optimizer();
  return {.optimizer = chosen, .decays = decays(optimizer, parameter)};
}

std::function<ParameterRule(std::string_view)> parameter_rules(const OptimizerConfig& optimizer,
                                                               const DecoderConfig& model) {
  std::map<std::string, ParameterRule, std::less<>> rules;
  for (const ParameterSpec& parameter : parameter_specs(model)) {
    rules[parameter.name] = parameter_rule(optimizer, parameter);
  }
  return [rules](std::string_view parameter) { return rules.find(parameter)->second; };
}

}  // namespace skein
