#include "skein/ops/rms_norm/norm_rows_stablehlo.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// [T, H head_dim] as f32[T H, head_dim]: each head is a row.
Tensor head_rows(const RuleCall& call, const Tensor& x) {
  const int64_t head_dim = call.constants().integer("head_dim");
  return to_f32(reshape(x, {x.type().num_elements() / head_dim, head_dim}));
}

std::vector<Tensor> forward(const RuleCall& call) {
  const NormedRows normed = norm_rows(head_rows(call, call.inputs[0]), to_f32(call.inputs[1]),
                                      call.constants().real("epsilon"));
  return {reshape(call.rounded(0, normed.y), call.outputs[0].dims),
          reshape(normed.rstd, call.outputs[1].dims)};
}

std::vector<Tensor> backward(const RuleCall& call) {
  const Tensor dy = head_rows(call, call.inputs[0]), x = head_rows(call, call.inputs[1]);
  const Tensor rstd = reshape(call.inputs[2], {x.dim(0)}), w = to_f32(call.inputs[3]);
  const NormRowsBackward grads = norm_rows_backward(dy, x, rstd, w);
  return {reshape(call.rounded(0, grads.dh), call.outputs[0].dims), call.inputs[4] + grads.dw};
}

}  // namespace

void add_head_norm_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["head_norm"] = forward;
  rules["head_norm_backward"] = backward;
}

}  // namespace skein
