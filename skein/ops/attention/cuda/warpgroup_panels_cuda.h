// Internal to the attention kernels of Hopper: how panels are filled, and how what a warpgroup has
// in registers is rounded and stored.
#pragma once

#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/tensor_core_tiles_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_cuda.h"
#include "skein/ops/cuda/async_copies_cuda.h"
#include "skein/ops/cuda/device_cuda.h"

namespace skein::attention_cuda::warpgroup {

// The same in all lanes, which nvcc sees, and so keeps what it makes of it once for a warp.
__device__ inline int warpgroup_of_thread() {
  return __shfl_sync(cuda::kAllLanes, static_cast<int>(threadIdx.x) / 128, 0);
}

// By as many threads, with zeros beyond the rows and head_dim. Complete after publish_copies() and
// a barrier.
template <int n, int threads, int rows, int cols>
__device__ void load_panels(const HeadRows& from, int head_dim, Panels<rows, cols>& to) {
  constexpr int kPacks = cols / n, kRowsAtOnce = threads / kPacks;
  static_assert(threads % kPacks == 0 && rows % kRowsAtOnce == 0);
  static_assert(kRowsAtOnce % 8 == 0 || n == 1);  // rows apart are swizzled alike
  const int thread = static_cast<int>(threadIdx.x) % threads, first = thread / kPacks;
  const int col = thread % kPacks * n;
  const int num_rows = col < head_dim ? from.num_rows : 0;
  const auto* at = row_at<const uint16_t>(from.rows, from.first_row + first, from.first_col + col);
  uint16_t* const to_first = to.at(first, col);
#pragma unroll 8
  for (int i = 0; i < rows / kRowsAtOnce; ++i) {
    const int row = first + i * kRowsAtOnce;
    cuda::copy_pack<n>(n > 1 ? to_first + i * kRowsAtOnce * kPanel : to.at(row, col), at,
                       row < num_rows);
    at += kRowsAtOnce * from.rows.stride;
  }
}

// Products see what this thread has stored, and its copies but for those of the last `pending`
// groups, after a barrier.
template <int pending>
__device__ void publish_copies() {
  cuda::wait_for_own_copies<pending>();
  publish_to_products();
}

// Two elements of bf16, the first in the low half.
__device__ inline uint32_t pair_of(float low, float high) {
#ifdef __CUDA_ARCH__
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return cuda::from_float<bfloat16>(low).bits | uint32_t{cuda::from_float<bfloat16>(high).bits}
                                                    << 16;
#endif
}

// 2^x in one instruction; exp2f() looks after subnormal numbers, which are zero here.
__device__ inline float power_of_two(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return exp2f(x);
#endif
}

// The descriptor of what lies `bytes` further. No carry leaves the field of the address, and to
// know this saves instructions.
__device__ inline uint64_t further(uint64_t descriptor, uint32_t bytes) {
  const auto low = static_cast<uint32_t>(descriptor) + (bytes >> 4);
  return (descriptor >> 32 << 32) | low;
}

// Rounded in pairs: the left operand of products.
template <int count>
__device__ void round_pairs(const float (&from)[2 * count], uint32_t (&to)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) to[i] = pair_of(from[2 * i], from[2 * i + 1]);
}

// sums[64, N] += weights[64, rows] terms[rows, N], with weights rounded in pairs. Runs behind the
// program, as a group of its own.
template <int rows, int cols, int count>
__device__ void accumulate(float (&sums)[count], const uint32_t* weights,
                           const Panels<rows, cols>& terms) {
  const uint64_t right = rows_as_they_are(terms, 0);
#pragma unroll
  for (int row = 0; row < rows; row += kDepth) {
    multiply<false>(sums, weights + row / 4, further(right, row * kPanel * 2), true);
  }
  commit();
}

// sums[64, N] = 64 rows of `left` times the transposed rows of `right`, in the same way.
template <int left_rows_count, int right_rows_count, int cols, int count>
__device__ void multiply_rows(float (&sums)[count], const Panels<left_rows_count, cols>& left,
                              int first_row, const Panels<right_rows_count, cols>& right) {
  const uint64_t first_left = left_rows(left, first_row, 0),
                 first_right = rows_transposed(right, 0);
#pragma unroll
  for (int dim = 0; dim < cols; dim += kDepth) {
    const uint32_t panel = dim / kPanel, in_panel = dim % kPanel * 2;
    multiply<true>(sums, further(first_left, panel * left.kBytes + in_panel),
                   further(first_right, panel * right.kBytes + in_panel), dim > 0);
  }
  commit();
}

template <int count>
__device__ void fill_zero(float (&sums)[count]) {
#pragma unroll
  for (float& sum : sums) sum = 0;
}

// Stores a lane's part of one of its rows of sums * factor: the first one, or that 8 below it.
template <int n, int count>
__device__ void store_row(const float (&sums)[count], int half, float factor, const Rows& to,
                          int64_t row, int64_t first_col, int head_dim) {
#pragma unroll
  for (int i = half * 2; i < count; i += 4) {
    const int col = column_of(i);
    uint16_t* const place = row_at<uint16_t>(to, row, first_col + col);
    const uint32_t pair = pair_of(sums[i] * factor, sums[i + 1] * factor);
    if constexpr (n > 1) {
      if (col < head_dim) *reinterpret_cast<uint32_t*>(place) = pair;
    } else {
      if (col < head_dim) place[0] = static_cast<uint16_t>(pair);
      if (col + 1 < head_dim) place[1] = static_cast<uint16_t>(pair >> 16);
    }
  }
}
// Both, of the rows that `is_stored` is called with: of the warpgroup's 64, the first of which is
// that of `to`.
template <int n, int count, typename IsStored>
__device__ void store_sums(const float (&sums)[count], float factor, const HeadRows& to,
                           int head_dim, const IsStored& is_stored) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = row_of_lane() + half * 8;
    if (row >= to.num_rows || !is_stored(row)) continue;
    store_row<n>(sums, half, factor, to.rows, to.first_row + row, to.first_col, head_dim);
  }
}

}  // namespace skein::attention_cuda::warpgroup
