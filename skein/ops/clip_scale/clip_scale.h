// The factor for the gradient sums: takes the mean over tokens, and clips it to a global norm.
//
// Formula    tokens = max(num_tokens, 1)
//            norm = sqrt(total(norm_sum)) / tokens         the norm of the mean gradient
//            scale = min(1, max_norm / (norm + 1e-6)) / tokens, or 1 / tokens where max_norm is 0
// Shapes     norm_sum f64[exact_sum::kBins], the sum of squares of the gradient sums
//            (skein/base/numbers/exact_sum.h); num_tokens i32[1], the labels of the global batch;
//            scale, norm f32[1]
// Computed   in f64, rounded once. Where a gradient is not finite, the norm is NaN
// Backward   none
// Placement  Replicated
// Source     torch.nn.utils.clip_grad_norm_
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kClipScale;  // (norm_sum, num_tokens) {max_norm} -> (scale, norm)

struct ClipScale {
  ValueId scale, norm;
};
ClipScale clip_scale(Graph& graph, ValueId norm_sum, ValueId num_tokens, double max_norm,
                     const std::string& scale_name, const std::string& norm_name);

}  // namespace skein
