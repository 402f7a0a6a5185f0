// Internal to the CUDA kernels of attention: what a thread block computes, beside cuDNN.
#pragma once

#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein::attention_cuda {

// The unit of a thread block: one of `heads` of a sequence, and a block of its rows.
struct Unit {
  int sequence, head, block;
};
__device__ inline Unit unit_at(const Problem& problem, int heads, int index) {
  const int num_heads = problem.num_sequences * heads, head = index % num_heads;
  return {head / heads, head % heads, index / num_heads};
}
__device__ inline Unit unit_of(const Problem& problem, int heads) {
  return unit_at(problem, heads, static_cast<int>(blockIdx.x));
}

// The positions of a range from the first to the last that these kernels compute, or an empty
// range. Those between them that cuDNN computes must not be stored. Every lane of a warp calls.
__device__ inline Range own_positions(const Problem& problem, int sequence, Range range) {
  if (problem.elsewhere == nullptr) return range;
  Range own = {range.end, range.begin};
  for (int first = range.begin; first < range.end; first += warpSize) {
    const int position = first + static_cast<int>(threadIdx.x) % warpSize;
    const bool mine = position < range.end && !problem.is_elsewhere(sequence, position);
    const unsigned lanes = __ballot_sync(cuda::kAllLanes, mine);
    if (lanes == 0) continue;
    if (own.begin == range.end) own.begin = first + __ffs(static_cast<int>(lanes)) - 1;
    own.end = first + warpSize - __clz(static_cast<int>(lanes));
  }
  return own;
}

}  // namespace skein::attention_cuda
