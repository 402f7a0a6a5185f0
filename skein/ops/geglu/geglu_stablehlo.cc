#include "skein/ops/geglu/geglu.h"
#include "skein/ops/gelu/gelu.h"
#include "skein/ops/gelu/gelu_terms_stablehlo.h"
#include "skein/ops/largest_stablehlo.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor gate = to_f32(call.inputs[0]), up = to_f32(call.inputs[1]);
  const Tensor share = gelu_share(gate, is_approximate_gelu(call.constants()));
  std::vector<Tensor> outputs = {call.rounded(0, gate * share * up)};
  append_largest(call, kGeglu, outputs);
  return outputs;
}

std::vector<Tensor> backward(const RuleCall& call) {
  const Tensor dy = to_f32(call.inputs[0]);
  const Tensor gate = to_f32(call.inputs[1]), up = to_f32(call.inputs[2]);
  const bool approximate = is_approximate_gelu(call.constants());
  const Tensor share = gelu_share(gate, approximate);
  const Tensor dgate = dy * up * gelu_slope(gate, share, approximate), dup = dy * (gate * share);
  std::vector<Tensor> outputs = {call.rounded(0, dgate), call.rounded(1, dup)};
  append_largest(call, kGegluBackward, outputs);
  return outputs;
}

}  // namespace

void add_geglu_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["geglu"] = forward;
  rules["geglu_backward"] = backward;
}

}  // namespace skein
