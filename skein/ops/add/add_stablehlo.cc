#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// y = a + b
std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor &a = call.inputs[0], &b = call.inputs[1];
  if (a.element() == Element::kF64) return {a + b};
  return {call.rounded(0, to_f32(a) + to_f32(b))};
}

}  // namespace

void add_add_stablehlo_rules(stablehlo::RuleTable& rules) { rules["add"] = forward; }

}  // namespace skein
