// Sizes of head_norm's CUDA kernels that planning needs, too (ops/cuda_rules.h).
#pragma once

#include "skein/base/text/units.h"
#include "skein/ir/kernel.h"

namespace skein::head_norm_cuda {

inline constexpr int kGroup = 64;  // heads of a block in backward

inline int64_t head_dim_of(const KernelCall& call) { return call.attrs.integer("head_dim"); }
inline int64_t num_heads(const KernelCall& call) {
  const View& y = call.outputs[0];
  return y.rows() * (y.cols() / head_dim_of(call));
}
// Blocks of backward, each of which writes a partial sum of dw to scratch memory.
inline int64_t num_groups(const KernelCall& call) { return ceil_div(num_heads(call), kGroup); }

}  // namespace skein::head_norm_cuda
