// Layer normalization of each token, including the residual sum before it.
//
// Formula       h = x + residual, rounded to the compute dtype; without a residual h is x itself
//               mean = mean over features of h
//               rstd = 1 / sqrt(mean over features of (h - mean)^2 + epsilon)
//               y = (h - mean) rstd w + b, without a bias (h - mean) rstd w
// Derivative    n = (h - mean) rstd, dn = dy w
//               dx = dh + rstd (dn - mean(dn) - n mean(dn n)), of x and of the residual alike
//               dw += sum over tokens of dy n;  db += sum over tokens of dy
// Shapes        x, residual, h, y [T, D] f32 or bf16; w, b [D] f32 or bf16, both of one dtype;
//               mean, rstd [T] f32
// Accumulation  fp32, the variance from values less the mean; dw and db over blocks of 64 tokens,
//               then the blocks by a binary tree
// Backward      saves h, mean and rstd
// Cost          about 8 flops an element forward, 14 backward; memory-bound
// Placement     tokens S0; w, b Replicated; dw, db Partial. Features cannot be split
// Source        Ba et al., arXiv:1607.06450; torch.nn.LayerNorm. Both uses: y as the sum's norm
//               (BERT), or beside h, which goes to the next layer (ModernBERT)
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// With {largest} both have one more output, of y or dx (skein/ops/largest.h).
// (x, [residual], w, [b]) {epsilon} -> (y, h, mean, rstd)
extern const OpDef kLayerNorm;
// (dy, [dh], h, mean, rstd, w, sum_w, [sum_b]) -> (dx, sum_w', [sum_b'])
extern const OpDef kLayerNormBackward;

struct LayerNorm {
  ValueId y, h, mean, rstd;
};
// `residual` and `b` may be kNoValue.
LayerNorm layer_norm(Graph& graph, ValueId x, ValueId residual, ValueId w, ValueId b,
                     double epsilon, const std::string& name);

struct LayerNormSums {
  ValueId w, b;
};
struct LayerNormBackward {
  ValueId dx;
  LayerNormSums sums;
};
// `dh` may be kNoValue, and sums.b if there is no bias.
LayerNormBackward layer_norm_backward(Graph& graph, ValueId dy, ValueId dh, const LayerNorm& saved,
                                      ValueId w, const LayerNormSums& sums,
                                      const std::string& name);

}  // namespace skein
