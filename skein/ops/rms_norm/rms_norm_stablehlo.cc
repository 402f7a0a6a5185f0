#include "skein/ops/block_sums.h"
#include "skein/ops/largest_stablehlo.h"
#include "skein/ops/rms_norm/norm_rows_stablehlo.h"
#include "skein/ops/rms_norm/rms_norm.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor& x = call.inputs[0];
  const Tensor h = call.has_input(1) ? call.rounded(1, to_f32(x) + to_f32(call.inputs[1])) : x;
  const NormedRows normed =
      norm_rows(as_stored(h), to_f32(call.inputs[2]), call.constants().real("epsilon"));
  std::vector<Tensor> outputs = {call.rounded(0, normed.y), h, normed.rstd};
  append_largest(call, kRmsNorm, outputs);
  return outputs;
}

std::vector<Tensor> backward(const RuleCall& call) {
  const Tensor dy = to_f32(call.inputs[0]), h = to_f32(call.inputs[2]);
  const NormRowsBackward grads = norm_rows_backward(dy, h, call.inputs[3], to_f32(call.inputs[4]));
  const Tensor dx = call.has_input(1) ? grads.dh + to_f32(call.inputs[1]) : grads.dh;
  std::vector<Tensor> outputs = {call.rounded(0, dx), call.inputs[5] + grads.dw};
  append_largest(call, kRmsNormBackward, outputs);
  return outputs;
}

}  // namespace

Tensor row_means(const Tensor& x) { return sum(x, {1}) / static_cast<double>(x.dim(1)); }

Tensor sum_of_rows(const Tensor& terms) {
  const int64_t rows = terms.dim(0), cols = terms.dim(1);
  if (rows % kBlockTokens != 0) return sum(terms, {0});
  return sum(sum(reshape(terms, {rows / kBlockTokens, kBlockTokens, cols}), {1}), {0});
}

NormedRows norm_rows(const Tensor& h, const Tensor& w, double epsilon) {
  const Tensor rstd = 1.0 / sqrt(row_means(h * h) + epsilon);
  return {h * as_columns(rstd, h.dim(1)) * as_rows(w, h.dim(0)), rstd};
}

NormRowsBackward norm_rows_backward(const Tensor& dy, const Tensor& h, const Tensor& rstd,
                                    const Tensor& w) {
  const int64_t rows = h.dim(0), cols = h.dim(1);
  const Tensor dn = dy * as_rows(w, rows), scale = as_columns(rstd, cols);
  const Tensor along_h = rstd * rstd * rstd * row_means(dn * h);
  return {scale * dn - h * as_columns(along_h, cols), sum_of_rows(dy * h * scale)};
}

void add_rms_norm_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["rms_norm"] = forward;
  rules["rms_norm_backward"] = backward;
}

}  // namespace skein
