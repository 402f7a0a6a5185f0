// The scratch memory of a matrix product on a GPU (ops/cuda_rules.h).
#pragma once

#include <cstdint>

#include "skein/tensor/dtype.h"

namespace skein {

// cuBLASLt's workspace: what NVIDIA recommends for Hopper.
inline constexpr int64_t kCudaMatmulWorkspaceBytes = int64_t{32} << 20;
inline constexpr int64_t kCudaMatmulWorkspaceAlignment = 256;

// `bias_cols`: the columns of a product with a bias, else 0.
inline constexpr int64_t cuda_matmul_scratch_bytes(int64_t bias_cols) {
  return kCudaMatmulWorkspaceAlignment + kCudaMatmulWorkspaceBytes +
         bias_cols * size_of(DType::kF32);
}

}  // namespace skein
