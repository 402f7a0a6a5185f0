// Sums and maxima over a block, in one fixed order: a butterfly over each warp, then over the
// warps.
//
// Threads  every thread of the block calls, of a one-dimensional block of whole warps, at most 1024
// Result   the same bits on every thread
#pragma once

#include <cuda_runtime.h>

namespace skein::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

template <typename T, typename Op>
__device__ T warp_reduce(T value, Op op) {
  for (int mask = 16; mask > 0; mask /= 2) {
    value = op(value, __shfl_xor_sync(kAllLanes, value, mask));
  }
  return value;
}

// `identity` of the op stands for the warps that do not exist.
template <typename T, typename Op>
__device__ T block_reduce(T value, Op op, T identity) {
  __shared__ T of_warps[32];
  value = warp_reduce(value, op);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int num_warps = blockDim.x / 32;
  __syncthreads();  // of_warps may still be read, from the call before
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  return warp_reduce(lane < num_warps ? of_warps[lane] : identity, op);
}
template <typename T>
__device__ T block_sum(T value) {
  return block_reduce(value, Sum(), T(0));
}
__device__ inline float block_max(float value) { return block_reduce(value, Max(), -INFINITY); }

}  // namespace skein::cuda
