// The update phase: global gradient norm, clipping, AdamW on every parameter.
//
// Inputs    learning_rate f32[1], step i32[1] (1 = the first update), num_label_tokens i32[1] of
//           the global batch; moments `exp_avg.<p>` and `exp_avg_sq.<p>`, and `master.<p>` in
//           mixed precision
// Outputs   grad_norm f32[1], before clipping; param_norm_squared
//           f64[exact_sum::kBins], of the updated weights
// Formula   docs/notation.md; torch.optim.AdamW and torch.nn.utils.clip_grad_norm_
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "skein/ir/graph.h"

namespace skein {

// How weights are stored and rounded.
enum class Precision {
  kF32,             // all in fp32
  kBF16,            // bf16 weights, rounded to nearest: loses small updates
  kBF16Stochastic,  // bf16 weights, stochastic rounding, no master copy
  kMixed,           // bf16 weights, fp32 master copy
};
Precision parse_precision(std::string_view mode);  // throws Error{kUsage}
DType compute_dtype(Precision precision);

struct UpdateOptions {
  Precision precision = Precision::kF32;
  DType moments = DType::kF32;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-5;
  double weight_decay = 0.1;
  double clip_norm = 1.0;  // 0: no clipping
  uint64_t seed = 1;
  std::function<bool(std::string_view)> decays = [](std::string_view) { return true; };
};

// Appends the update of every parameter that has a gradient. Call after `differentiate`.
void append_update(Graph& graph, const UpdateOptions& options);

}  // namespace skein
