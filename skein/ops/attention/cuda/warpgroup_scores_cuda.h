// Internal to backward attention on Hopper: what becomes of the scores of a warpgroup, its 64 rows
// by kOthers, in registers. Rows are queries and the others keys (dq), or the reverse (dk and dv).
#pragma once

#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_panels_cuda.h"

namespace skein::attention_cuda::warpgroup {

// Of elements 4 i to 4 i + 3, which are in two rows and two columns: a value each.
struct Four {
  float at[2][2];
};
struct OfRows {
  float at[2];
  __device__ Four operator()(int) const { return {{{at[0], at[0]}, {at[1], at[1]}}}; }
};
struct OfColumns {
  const float* at;  // in shared memory
  __device__ Four operator()(int i) const {
    const auto pair = *reinterpret_cast<const float2*>(at + column_of(4 * i));
    return {{{pair.x, pair.y}, {pair.x, pair.y}}};
  }
};

template <bool kRowsAreQueries, int kOthers>
struct Mask {
  const int32_t *row_starts, *other_starts;
  int first_row, first_other;  // positions
  bool causal;

  __device__ bool shows_all() const {
    const int before = first_other - first_row;
    const bool in_order =
        !causal || (kRowsAreQueries ? before <= 1 - kOthers : before >= kBlock - 1);
    // Differences, so that four loads run at once.
    const int start = row_starts[0];
    return in_order && ((row_starts[kBlock - 1] ^ start) | (other_starts[0] ^ start) |
                        (other_starts[kOthers - 1] ^ start)) == 0;
  }
  __device__ bool shows(int row, int other) const {
    const int before = first_other + other - (first_row + row);
    return row_starts[row] == other_starts[other] &&
           (!causal || (kRowsAreQueries ? before <= 0 : before >= 0));
  }
};

// weights = exp(scale * scores - lse), zero where the mask does not show; `all`: it shows_all().
// May be in place.
template <bool kRowsAreQueries, int kOthers, typename Lse, int count>
__device__ void weigh(const Mask<kRowsAreQueries, kOthers>& mask, bool all, float scale,
                      const Lse& lse, const float (&scores)[count], float (&weights)[count]) {
  static_assert(count == kOthers / 2);
  const float factor = scale * kLog2E;
#pragma unroll
  for (int i = 0; i < count / 4; ++i) {
    const Four logarithms = lse(i);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float offset = logarithms.at[j / 2][j % 2] * -kLog2E;
      weights[4 * i + j] = power_of_two(scores[4 * i + j] * factor + offset);
    }
  }
  if (all) return;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (!mask.shows(row_of_lane() + i / 2 % 2 * 8, column_of(i))) weights[i] = 0;
  }
}

// products become ds.
template <typename Deltas, int count>
__device__ void differentiate(const float (&weights)[count], const Deltas& deltas,
                              float (&products)[count]) {
#pragma unroll
  for (int i = 0; i < count / 4; ++i) {
    const Four subtracted = deltas(i);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float& product = products[4 * i + j];
      product = weights[4 * i + j] * (product - subtracted.at[j / 2][j % 2]);
    }
  }
}

}  // namespace skein::attention_cuda::warpgroup
