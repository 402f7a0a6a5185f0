#include "skein/ops/gelu/gelu.h"
#include "skein/ops/gelu/gelu_terms.h"
#include "skein/ops/gelu/gelu_terms_stablehlo.h"
#include "skein/ops/largest_stablehlo.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)
namespace terms = gelu_terms;

template <size_t count>
Tensor polynomial(const std::array<float, count>& of, const Tensor& x) {
  Tensor sum = x * static_cast<double>(of[count - 1]) + static_cast<double>(of[count - 2]);
  for (size_t i = count - 2; i > 0; --i) sum = sum * x + static_cast<double>(of[i - 1]);
  return sum;
}

Tensor bell(const Tensor& x) { return exp(-0.5 * (x * x)); }

// Phi(x). For large x the first polynomial overflows, where it is not chosen.
Tensor normal_distribution(const Tensor& x) {
  const Tensor size = abs(x), r = 1.0 / (size + terms::kShift);
  const Tensor below = bell(x) * r * polynomial(terms::far_terms(), (size - terms::kShift) * r);
  const Tensor far = select(compare(x, Compare::kLess, 0.0), below, 1.0 - below);
  const Tensor near = x * polynomial(terms::near_terms(), x * x) + 0.5;
  return select(compare(size, Compare::kLess, 1.0), near, far);
}

std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor x = to_f32(call.inputs[0]);
  const bool approximate = is_approximate_gelu(call.constants());
  std::vector<Tensor> outputs = {call.rounded(0, x * gelu_share(x, approximate))};
  append_largest(call, kGelu, outputs);
  return outputs;
}

std::vector<Tensor> backward(const RuleCall& call) {
  const Tensor dy = to_f32(call.inputs[0]), x = to_f32(call.inputs[1]);
  const bool approximate = is_approximate_gelu(call.constants());
  const Tensor slope = gelu_slope(x, gelu_share(x, approximate), approximate);
  std::vector<Tensor> outputs = {call.rounded(0, dy * slope)};
  append_largest(call, kGeluBackward, outputs);
  return outputs;
}

}  // namespace

Tensor gelu_share(const Tensor& x, bool approximate) {
  if (!approximate) return normal_distribution(x);
  return logistic(x * (x * x * terms::kCubic + terms::kLinear));
}

Tensor gelu_slope(const Tensor& x, const Tensor& share, bool approximate) {
  if (!approximate) return share + x * (bell(x) * terms::kDensityAtZero);
  const Tensor bounded = maximum(minimum(x, terms::kFlat), -terms::kFlat);
  const Tensor growth = bounded * bounded * (3.0 * terms::kCubic) + terms::kLinear;
  return share + x * (share * (1.0 - share)) * growth;
}

void add_gelu_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["gelu"] = forward;
  rules["gelu_backward"] = backward;
}

}  // namespace skein
