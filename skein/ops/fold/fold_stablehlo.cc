#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

std::vector<Tensor> move(const RuleCall& call) {
  const bool merges = call.constants().text("mode") == "merge";
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < call.inputs.size(); i += 2) {
    const Tensor &level = call.inputs[i], &gradient = call.inputs[i + 1];
    outputs.push_back(merges ? level : gradient);
    outputs.push_back(merges ? level + gradient
                             : call.to.constant(Element::kF32, 0, gradient.dims()));
  }
  return outputs;
}

}  // namespace

void add_fold_stablehlo_rules(stablehlo::RuleTable& rules) { rules["fold"] = move; }

}  // namespace skein
