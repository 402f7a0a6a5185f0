#include "skein/ops/largest_stablehlo.h"
#include "skein/ops/swiglu/swiglu.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor gate = to_f32(call.inputs[0]), up = to_f32(call.inputs[1]);
  std::vector<Tensor> outputs = {call.rounded(0, gate * logistic(gate) * up)};
  append_largest(call, kSwiglu, outputs);
  return outputs;
}

std::vector<Tensor> backward(const RuleCall& call) {
  const Tensor dy = to_f32(call.inputs[0]);
  const Tensor gate = to_f32(call.inputs[1]), up = to_f32(call.inputs[2]);
  const Tensor s = logistic(gate);
  const Tensor dgate = dy * s * up * (1.0 + gate * (1.0 - s)), dup = dy * s * gate;
  std::vector<Tensor> outputs = {call.rounded(0, dgate), call.rounded(1, dup)};
  append_largest(call, kSwigluBackward, outputs);
  return outputs;
}

}  // namespace

void add_swiglu_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["swiglu"] = forward;
  rules["swiglu_backward"] = backward;
}

}  // namespace skein
