#include "skein/ops/largest_stablehlo.h"
#include "skein/ops/rope/rope.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// x1' = x1 c - x2 s;  x2' = x2 c + x1 s, of the halves of every head of x [T, heads * 2 half]; c, s
// [T, half]
Tensor turned(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const int64_t rows = x.dim(0), half = cosines.dim(1), heads = x.dim(1) / (2 * half);
  const Tensor in_heads = reshape(x, {rows, heads, 2 * half});
  const Tensor x1 = to_f32(slice_dim(in_heads, 2, 0, half));
  const Tensor x2 = to_f32(slice_dim(in_heads, 2, half, 2 * half));
  const Tensor c = broadcast(cosines, {rows, heads, half}, {0, 2});
  const Tensor s = broadcast(sines, {rows, heads, half}, {0, 2});
  const Tensor y1 = convert(x1 * c - x2 * s, x.element());
  const Tensor y2 = convert(x2 * c + x1 * s, x.element());
  return reshape(concatenate({y1, y2}, 2), x.dims());
}

std::vector<Tensor> forward(const RuleCall& call) {
  const int64_t head_dim = call.constants().integer("head_dim"), half = head_dim / 2;
  const Tensor of_positions = take_rows(call.inputs[3], call.inputs[2]);
  const Tensor cosines = slice_dim(of_positions, 1, 0, half);
  const Tensor sines = slice_dim(of_positions, 1, half, head_dim);
  const Tensor signed_sines = call.constants().flag("inverse") ? -sines : sines;
  std::vector<Tensor> outputs = {turned(call.inputs[0], cosines, signed_sines),
                                 turned(call.inputs[1], cosines, signed_sines)};
  append_largest(call, kRope, outputs);
  return outputs;
}

}  // namespace

void add_rope_stablehlo_rules(stablehlo::RuleTable& rules) { rules["rope"] = forward; }

}  // namespace skein
