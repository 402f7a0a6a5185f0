// Muon: momentum, made orthogonal by Newton and Schulz, updates the matrices of layers.
//
// Formula       g = gradient * scale
//               m = m + (1 - momentum) (g - m)
//               d = g + momentum (m - g)                            Nesterov's momentum
//               X = d / max(|d|, 1e-7), |d| the Frobenius norm
//               5 times: A = X X^T, X = a X + (b A + c A A) X       of the transpose, if d is tall
//                        a, b, c = 3.4445, -4.7750, 2.0315
//               w = w - learning_rate weight_decay w
//               w = w - learning_rate 0.2 sqrt(max(rows, cols)) X
//               The last factor makes the update as large as AdamW's, so that a learning rate and a
//               weight decay that suit AdamW suit Muon as well
// Ops           kMuonMomentum, kOrthogonalize and kMuonApply, because a matrix must be whole where
//               it is made orthogonal: over the ranks that share its state (ZeRO) directions are
//               gathered, the matrices of a group are dealt out to owners, each matrix is made
//               orthogonal by its owner alone, and every rank receives its range of the result.
//               Tensor ranks of one owner each make the whole matrix orthogonal
// Shapes        matrices; weight w f32 or bf16; gradient f32; momentum m f32 or bf16; master f32,
//               with a bf16 weight; direction and its orthogonal f32 or bf16, the dtype of the
//               weight. scale, learning_rate f32[1]; step i32[1], 1 at the first update
// Computed      m, d and w in fp32. Products of operands in the direction's dtype, summed in fp32;
//               A, b A + c A A and X are rounded to that dtype. |d| is the root of a sum in f64,
//               in a fixed order
// Rounding      of w and of a bf16 m as in AdamW (ops/adamw/adamw.h), of d to nearest. Noise
//               depends on the element of the whole parameter, so results do not depend on how the
//               parameter is split
// Cost          rows >= cols = n: 10 n^2 (2 rows + n) flops for its owner
// Placement     momentum, apply: S0, S1 or F over each axis, as AdamW. orthogonalize: R, and over
//               the axes of {over} the result is Partial: its owner's, and zero of the others
// Source        Jordan et al., kellerjordan.github.io/posts/muon (2024); the factor of the update:
//               Liu et al., arXiv:2502.16982; torch.optim.Muon with match_rms_adamw
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skein/ops/optimizer.h"

namespace skein {

// (gradient, momentum, scale, step) {momentum, direction: a dtype, seed, stream}
//   -> (gradient', momentum', direction); gradient' is zero, or as it was with {keeps_gradient}
extern const OpDef kMuonMomentum;
// (direction) {over: names of axes, owner: the rank over them} -> orthogonal
extern const OpDef kOrthogonalize;
// (weight, orthogonal, [master], learning_rate, step) {weight_decay, update_scale,
// stochastic_rounding, seed, stream} -> (weight', [master'])
extern const OpDef kMuonApply;

// Newton's and Schulz's polynomial.
struct NewtonSchulz {
  static constexpr int kSteps = 5;
  static constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
  static constexpr double kLeastNorm = 1e-7;
};

// Every rank holds the whole directions of a group, so groups do not grow with the ranks for ever.
inline constexpr int64_t kMostMuonOwners = 16;

// State: momentum.
const Optimizer& muon_optimizer();

// The factor of learning_rate for a matrix of this shape.
double muon_update_scale(const Shape& shape);

// Who makes each of these matrices orthogonal: the most expensive first, each to the rank with the
// least to do.
std::vector<int64_t> muon_owners(const std::vector<Shape>& matrices, int64_t num_ranks);

}  // namespace skein
