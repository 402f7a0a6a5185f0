// RMS normalization of each token, including the residual sum before it.
//
// Formula       h = x + delta, rounded to the compute dtype; without delta h is x itself
//               rstd = 1 / sqrt(mean over features of h^2 + epsilon)
//               y = h rstd w
// Derivative    dn = dy w
//               dx = dh + rstd dn - h rstd^3 mean(dn h), of x and of delta alike
//               dw += sum over tokens of dy h rstd
// Shapes        x, delta, h, y [T, D] f32 or bf16; w [D] f32 or bf16; rstd [T] f32
// Accumulation  fp32; dw over blocks of 64 tokens, then the blocks by a binary tree
// Backward      saves h and rstd
// Cost          about 5 flops an element forward, 10 backward; memory-bound
// Placement     tokens S0, w Replicated; dw Partial. Features cannot be split
// Source        Zhang and Sennrich, arXiv:1910.07467; transformers LlamaRMSNorm
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// With {largest} both have one more output, of y or dx (skein/ops/largest.h).
extern const OpDef kRmsNorm;          // (x, [delta], w) {epsilon} -> (y, h, rstd)
extern const OpDef kRmsNormBackward;  // (dy, [dh], h, rstd, w, sum) -> (dx, sum')

struct RmsNorm {
  ValueId y, h, rstd;
};
// `delta` may be kNoValue.
RmsNorm rms_norm(Graph& graph, ValueId x, ValueId delta, ValueId w, double epsilon,
                 const std::string& name);

struct RmsNormBackward {
  ValueId dx, sum;
};
// `dh` may be kNoValue.
RmsNormBackward rms_norm_backward(Graph& graph, ValueId dy, ValueId dh, ValueId h, ValueId rstd,
                                  ValueId w, ValueId sum, const std::string& name);

}  // namespace skein
