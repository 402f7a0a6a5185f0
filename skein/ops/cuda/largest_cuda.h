// The largest magnitude of values, found by all blocks of a kernel: the bits of a float, of which
// the order is that of floats that are not negative.
#pragma once

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein::cuda {

// `so_far`, or what is larger in the pack. Ignores NaN.
template <typename T, int n>
__device__ float larger(float so_far, const Pack<T, n>& pack) {
  float values[n];
  to_floats(values, pack);
  for (const float value : values) so_far = fmaxf(so_far, fabsf(value));
  return so_far;
}

// Every thread of the block calls.
__device__ inline void keep_largest(float of_thread, unsigned* found) {
  const float largest = block_max(of_thread);
  if (threadIdx.x == 0) atomicMax(found, __float_as_uint(largest));
}

// What keep_largest of the next kernel gets.
inline unsigned* start_largest(const KernelCall& call, const View& output) {
  check(cudaMemsetAsync(output.data, 0, sizeof(unsigned), stream_of(call)), "cudaMemsetAsync");
  return output.as<unsigned>();
}

}  // namespace skein::cuda
