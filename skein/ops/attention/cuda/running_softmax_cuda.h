// Internal to the attention kernels of Hopper: the softmax of the two rows of scores that a lane
// shares with three others (warpgroup_cuda.h), over one block of keys after another.
#pragma once

#include <cmath>

#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_panels_cuda.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein::attention_cuda {

constexpr int kRows = 2;  // of a lane, 8 apart

// Element i of a row in sums or scores.
__device__ constexpr int element_of(int half, int i) { return i / 2 * 4 + half * 2 + i % 2; }

// -INFINITY for keys that a row does not see; element 0 is of key `first`.
template <int count>
__device__ void hide(const Range (&visible)[kRows], int first, float (&scores)[count]) {
  const int own = first + warpgroup::column_of(0);
#pragma unroll
  for (int half = 0; half < kRows; ++half) {
    const int begin = visible[half].begin - own, end = visible[half].end - own;
#pragma unroll
    for (int i = 0; i < count / kRows; ++i) {
      const int key = i / 2 * 8 + i % 2;
      if (key < begin || key >= end) scores[element_of(half, i)] = -INFINITY;
    }
  }
}

struct RunningSoftmax {
  float factor;  // of scores, to exponents of 2
  float largest[kRows] = {-INFINITY, -INFINITY};
  float total[kRows] = {};  // of this lane's keys

  // Scores become weights. What was summed with earlier weights shrinks by `shrink`.
  template <int count>
  __device__ void advance(float (&scores)[count], float (&shrink)[kRows]) {
#pragma unroll
    for (int half = 0; half < kRows; ++half) {
      // Two chains of comparisons.
      float most = largest[half], odd = scores[element_of(half, 1)];
#pragma unroll
      for (int i = 0; i < count / kRows; i += 2) {
        most = fmaxf(most, scores[element_of(half, i)]);
        odd = fmaxf(odd, scores[element_of(half, i + 1)]);
      }
      most = fmaxf(most, odd);
      most = fmaxf(most, __shfl_xor_sync(cuda::kAllLanes, most, 1));
      most = fmaxf(most, __shfl_xor_sync(cuda::kAllLanes, most, 2));
      // Nothing visible yet: any finite number keeps NaN away.
      const float offset = most == -INFINITY ? 0 : most * factor;
      shrink[half] = warpgroup::power_of_two(largest[half] * factor - offset);
      largest[half] = most;
      total[half] *= shrink[half];
#pragma unroll
      for (int i = 0; i < count / kRows; ++i) {
        float& score = scores[element_of(half, i)];
        score = warpgroup::power_of_two(__fmaf_rn(score, factor, -offset));
        total[half] += score;
      }
    }
  }
  __device__ float sum(int half) const {
    const float pair = total[half] + __shfl_xor_sync(cuda::kAllLanes, total[half], 1);
    return pair + __shfl_xor_sync(cuda::kAllLanes, pair, 2);
  }
  __device__ float lse(int half) const {
    return (largest[half] * factor + log2f(sum(half))) * kLn2;
  }
};

}  // namespace skein::attention_cuda
