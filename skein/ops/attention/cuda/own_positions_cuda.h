// Internal to the CUDA kernels of attention: what is theirs beside documents that cuDNN computes.
#pragma once

#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein::attention_cuda {

// The positions from the first to the last of a range that these kernels compute, by every lane of
// a warp; others between them are not to be stored. Empty: none.
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
