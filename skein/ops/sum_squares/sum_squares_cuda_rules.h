// Sizes of sum_squares' CUDA kernels that planning needs, too (ops/cuda_rules.h).
#pragma once

#include "skein/ir/kernel.h"

namespace skein::sum_squares_cuda {

inline constexpr int64_t kMaxBlocks = 2048;     // of a launch
inline constexpr int64_t kTensorsAtOnce = 165;  // of a launch

// Room for the bins of all blocks of all launches.
inline int64_t max_blocks(const KernelCall& call) {
  const auto num_tensors = static_cast<int64_t>(call.inputs.size());
  return kMaxBlocks * (num_tensors / kTensorsAtOnce + 2);  // 2 dtypes
}

}  // namespace skein::sum_squares_cuda
