#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// y[t,o] = x[t,o] + b[o]
std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor x = to_f32(call.inputs[0]), b = to_f32(call.inputs[1]);
  return {call.rounded(0, x + as_rows(b, x.dim(0)))};
}

}  // namespace

void add_add_bias_stablehlo_rules(stablehlo::RuleTable& rules) { rules["add_bias"] = forward; }

}  // namespace skein
