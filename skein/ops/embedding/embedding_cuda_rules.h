// Sizes of embedding's CUDA kernels that planning needs, too (ops/cuda_rules.h).
#pragma once

#include "skein/base/text/units.h"
#include "skein/ir/kernel.h"

namespace skein::embedding_cuda {

// A token and its row: (row << 32) | token. So all keys differ.
using Key = uint64_t;

inline constexpr int kWindow = 32;  // keys whose gradients are added at once

// Of embedding_dw. Scratch memory holds two lists of all keys, then a partial sum of each window.
inline int64_t num_windows(const KernelCall& call) {
  return ceil_div(call.inputs[1].rows(), kWindow);
}

}  // namespace skein::embedding_cuda
