// What the backward kernels of rms_norm and layer_norm share: sums over a row, rows on their way to
// shared memory, and the sums of groups of tokens (norm_groups.h), added as a binary tree.
#pragma once

#include <algorithm>
#include <bit>

#include "skein/ops/cuda/async_copies_cuda.h"
#include "skein/ops/cuda/norm_rows_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"
#include "skein/ops/cuda/shared_memory_cuda.h"

namespace skein::cuda {

// Sums over the block of each of `count` values, with one barrier: calls alternate between two
// `turn`s, and who is at a barrier has read what the call before the last one wrote.
template <int count>
__device__ void sum_over_warps(float (&values)[count], int turn) {
  __shared__ float of_warps[2][count][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int num_warps = blockDim.x / 32;
  for (float& value : values) value = warp_reduce(value, Sum());
  if (num_warps == 1) return;
  if (lane < count) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (lane == i) of_warps[turn][i][warp] = values[i];
    }
  }
  __syncthreads();
  for (int i = 0; i < count; ++i) {
    values[i] = warp_reduce(lane < num_warps ? of_warps[turn][i][lane] : 0.0f, Sum());
  }
}

// Rows on their way to shared memory, in steps of kRows, so that memory does not wait for sums over
// the block. A thread copies just the packs that it uses itself: it waits for no other.
template <typename T, int kThreads, int kPacks, int kRows, bool has_dh>
struct RowRing {
  enum Operand { kDy, kH, kDh };
  static constexpr int n = kPackOf<T>, kPacksOfStep = (has_dh ? 3 : 2) * kRows * kPacks;
  // That have a place: a multiprocessor holds two blocks of 256 threads, or one of more.
  static constexpr int kSteps = kThreads < 1024 ? 4 : 2;

  static int bytes(int steps, unsigned threads) {
    return std::min(steps, kSteps) * kPacksOfStep * static_cast<int>(threads * sizeof(Pack<T, n>));
  }
  __device__ static T* place(int step, Operand operand, int row, int pack) {
    const int index = step % kSteps * kPacksOfStep + (operand * kRows + row) * kPacks + pack;
    const unsigned slot = index * blockDim.x + threadIdx.x;
    return (&dynamic_memory<Pack<T, n>>(slot + 1) + slot)->at;
  }
};

// Of a block, such that one of 256 rows finds room beside those that it waits for.
inline constexpr int kTreeCols = 16;
inline constexpr unsigned kTreeWarps = 32;  // of a block at most
inline constexpr int kLeaves = 8;           // rows that a thread reads, all at once
template <int n>
inline constexpr int kLeavesOfWarp = 32 / (kTreeCols / n) * kLeaves;

// Adds rows of partial that lie `distance` apart, as a binary tree. A thread has n columns of
// kLeaves rows, and the next threads of the block have the next rows. A block's sum is added to
// `sum` or, where there is none because other blocks have more rows, replaces the first row that it
// read.
template <int n>
__global__ void __launch_bounds__(kTreeWarps * 32, 1)
    add_groups(float* partial, int groups, int64_t distance, int cols, float* sum) {
  constexpr int kLanes = kTreeCols / n;  // that have the same rows
  alignas(16) __shared__ float of_warps[kTreeWarps][kTreeCols + 4];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, num_warps = blockDim.x / 32;
  const int first_col = blockIdx.x * kTreeCols, col = first_col + lane % kLanes * n;
  const int first_group = blockIdx.y * num_warps * kLeavesOfWarp<n>;
  // At the end adjacent lanes have the sums that the warps found of one column.
  const int found_by = threadIdx.x % num_warps, found_of = threadIdx.x / num_warps;
  const bool has_sum = found_of < kTreeCols;
  const bool writes = has_sum && found_by == 0 && first_col + found_of < cols;
  float* const result =
      (sum != nullptr ? sum : partial + first_group * distance) + first_col + found_of;
  if (writes) prefetch(result);
  wait_for_previous_kernel();

  const int group = first_group + warp * kLeavesOfWarp<n> + lane / kLanes * kLeaves;
  const float* const from = partial + group * distance + col;
  Pack<float, n> leaves[kLeaves];
#pragma unroll
  for (int i = 0; i < kLeaves; ++i) {
    leaves[i] = load_pack_or<n>(0.0f, group + i < groups && col < cols, from + i * distance);
  }
  const float before = writes && sum != nullptr ? *result : 0.0f;
#pragma unroll
  for (int gap = 1; gap < kLeaves; gap *= 2) {
    for (int i = 0; i < kLeaves; i += 2 * gap) {
      for (int j = 0; j < n; ++j) leaves[i].at[j] += leaves[i + gap].at[j];
    }
  }
#pragma unroll
  for (int mask = kLanes; mask < 32; mask *= 2) {
    for (float& value : leaves[0].at) value += __shfl_xor_sync(kAllLanes, value, mask);
  }
  if (lane < kLanes) store_pack(&of_warps[warp][lane * n], leaves[0]);
  __syncthreads();
  float total = has_sum ? of_warps[found_by][found_of] : 0.0f;
  for (int mask = 1; mask < num_warps; mask *= 2) total += __shfl_xor_sync(kAllLanes, total, mask);
  if (writes) *result = sum != nullptr ? before + total : total;
}

// sum[0, cols) += the sums of `groups` rows of `partial`, which it overwrites. In one launch for up
// to 2,048 groups, or 512 where columns are no packs.
template <int n>
void add_group_sums_of_packs(const KernelCall& call, float* partial, unsigned groups, int cols,
                             float* sum) {
  int64_t distance = cols;
  for (bool is_last = false; !is_last;) {
    const unsigned warps = std::clamp(std::bit_ceil(groups) / kLeavesOfWarp<n>, 1u, kTreeWarps);
    const unsigned groups_of_block = warps * kLeavesOfWarp<n>;
    is_last = groups <= groups_of_block;
    launch(call, dim3(blocks_for(cols, kTreeCols), blocks_for(groups, groups_of_block)), warps * 32,
           add_groups<n>, partial, static_cast<int>(groups), distance, cols,
           is_last ? sum : nullptr);
    groups = blocks_for(groups, groups_of_block);
    distance *= groups_of_block;
  }
}
inline void add_group_sums(const KernelCall& call, float* partial, unsigned groups, int cols,
                           float* sum) {
  cols % 4 == 0 ? add_group_sums_of_packs<4>(call, partial, groups, cols, sum)
                : add_group_sums_of_packs<1>(call, partial, groups, cols, sum);
}

}  // namespace skein::cuda
