#include "skein/ops/exact_sum_stablehlo.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// min(1, max_norm / (norm + 1e-6)), and 1 where the norm is NaN.
Tensor clipping(const Tensor& norm, double max_norm) {
  const Tensor ratio = max_norm / (norm + 1e-6);
  return select(compare(ratio, Compare::kLess, 1.0), ratio,
                norm.function().constant(Element::kF64, 1));
}

std::vector<Tensor> forward(const RuleCall& call) {
  const double max_norm = call.constants().real("max_norm");
  const Tensor tokens = to_f64(maximum(call.inputs[1], 1));
  const Tensor norm = sqrt(exact_sum::total(call.inputs[0])) / tokens;
  const Tensor scale =
      (max_norm > 0 ? clipping(norm, max_norm) : call.to.constant(Element::kF64, 1, {1})) / tokens;
  return {call.rounded(0, scale), call.rounded(1, norm)};
}

}  // namespace

void add_clip_scale_stablehlo_rules(stablehlo::RuleTable& rules) { rules["clip_scale"] = forward; }

}  // namespace skein
