#include "skein/ops/largest_stablehlo.h"
#include "skein/ops/layer_norm/layer_norm.h"
#include "skein/ops/rms_norm/norm_rows_stablehlo.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// (h - mean) of each row.
Tensor centred(const Tensor& h, const Tensor& mean) { return h - as_columns(mean, h.dim(1)); }

std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor& x = call.inputs[0];
  const Tensor kept = call.has_input(1) ? call.rounded(1, to_f32(x) + to_f32(call.inputs[1])) : x;
  const Tensor h = as_stored(kept), mean = row_means(h), rest = centred(h, mean);
  const int64_t rows = h.dim(0), cols = h.dim(1);
  const Tensor rstd = 1.0 / sqrt(row_means(rest * rest) + call.constants().real("epsilon"));
  Tensor y = rest * as_columns(rstd, cols) * as_rows(to_f32(call.inputs[2]), rows);
  if (call.has_input(3)) y = y + as_rows(to_f32(call.inputs[3]), rows);
  std::vector<Tensor> outputs = {call.rounded(0, y), kept, mean, rstd};
  append_largest(call, kLayerNorm, outputs);
  return outputs;
}

std::vector<Tensor> backward(const RuleCall& call) {
  const Tensor dy = to_f32(call.inputs[0]), h = to_f32(call.inputs[2]);
  const int64_t rows = h.dim(0), cols = h.dim(1);
  const Tensor scale = as_columns(call.inputs[4], cols);
  const Tensor normed = centred(h, call.inputs[3]) * scale;
  const Tensor dn = dy * as_rows(to_f32(call.inputs[5]), rows);
  const Tensor along_n = as_columns(row_means(dn * normed), cols);
  Tensor dx = (centred(dn, row_means(dn)) - normed * along_n) * scale;
  if (call.has_input(1)) dx = dx + to_f32(call.inputs[1]);
  std::vector<Tensor> outputs = {call.rounded(0, dx), call.inputs[6] + sum_of_rows(dy * normed)};
  if (call.has_input(7)) outputs.push_back(call.inputs[7] + sum_of_rows(dy));
  append_largest(call, kLayerNormBackward, outputs);
  return outputs;
}

}  // namespace

void add_layer_norm_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["layer_norm"] = forward;
  rules["layer_norm_backward"] = backward;
}

}  // namespace skein
