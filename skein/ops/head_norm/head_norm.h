// RMS normalization of each head, as in Qwen3 for queries and keys.
//
// Formula       rstd[t,h] = 1 / sqrt(mean over i of x[t,h,i]^2 + epsilon)
//               y[t,h,i] = x[t,h,i] rstd[t,h] w[i]
// Derivative    dn = dy w
//               dx = rstd dn - x rstd^3 mean(dn x), of each head
//               dw += sum over tokens and heads of dy x rstd
// Shapes        x, y [T, H head_dim] f32 or bf16; w [head_dim] f32 or bf16; rstd [T, H] f32
// Accumulation  fp32; dw over the heads of blocks of 64 tokens, then the blocks by a binary tree
// Backward      saves x and rstd
// Cost          about 5 flops an element forward, 10 backward; memory-bound
// Placement     tokens S0; heads S1; w Replicated, dw Partial. The derivative is linear, so a
//               gradient that is still a pending sum passes through it
// Source        transformers Qwen3RMSNorm; Henry et al., arXiv:2010.04245, for the idea
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kHeadNorm;          // (x, w) {head_dim, epsilon} -> (y, rstd)
extern const OpDef kHeadNormBackward;  // (dy, x, rstd, w, sum) {head_dim} -> (dx, sum')

// Returns y.
ValueId head_norm(Graph& graph, ValueId x, ValueId w, int64_t head_dim, double epsilon,
                  const std::string& name);

}  // namespace skein
