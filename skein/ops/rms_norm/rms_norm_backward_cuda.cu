#include <algorithm>
#include <bit>

#include "skein/ops/cuda/async_copies_cuda.h"
#include "skein/ops/cuda/largest_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"
#include "skein/ops/cuda/shared_memory_cuda.h"
#include "skein/ops/largest.h"
#include "skein/ops/rms_norm/rms_norm_cuda.h"
#include "skein/ops/rms_norm/rms_norm_cuda_rules.h"

namespace skein {
namespace {

using namespace rms_norm_cuda;  // NOLINT(google-build-using-namespace)

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
struct Ring {
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

// A block has one group of tokens, of which it takes kRows at once.
template <typename T, typename W, int kThreads, int kPacks, int kRows, bool has_dh, bool finds>
__global__ void __launch_bounds__(kThreads, kThreads == 256 ? 2 : 1)
    backward(RowsOf<const T> dy, RowsOf<const T> dh, RowsOf<const T> h, const float* rstd,
             const W* w, RowsOf<T> dx, float* partial, int64_t rows, int cols, float inverse_cols,
             int group, [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  using Ring = Ring<T, kThreads, kPacks, kRows, has_dh>;
  constexpr int n = Ring::n;
  const int64_t begin = int64_t{blockIdx.x} * group;
  const int num_rows = static_cast<int>(std::min(rows - begin, int64_t{group}));
  const auto each = [&](const auto& body) {
    for_packs<kPacks, n>(static_cast<int>(threadIdx.x), kPacks, body);
  };
  // Behind the last row it copies that one again.
  const auto copy = [&](int step) {
#pragma unroll
    for (int r = 0; r < kRows && step * kRows < num_rows; ++r) {
      const int64_t row = begin + std::min(step * kRows + r, num_rows - 1);
      each([&](int i, int col) {
        const bool inside = col < cols;
        copy_pack<n>(Ring::place(step, Ring::kDy, r, i), dy.at(row) + col, inside);
        copy_pack<n>(Ring::place(step, Ring::kH, r, i), h.at(row) + col, inside);
        if constexpr (has_dh) {
          copy_pack<n>(Ring::place(step, Ring::kDh, r, i), dh.at(row) + col, inside);
        }
      });
    }
    commit_copies();
  };
  for (int step = 0; step < Ring::kSteps; ++step) copy(step);

  const int lane = static_cast<int>(threadIdx.x) % 32;
  // A group has at most 16 rows. Those that do not exist count as zero.
  const float rstd_of_lane = lane < num_rows ? rstd[begin + lane] : 0.0f;
  constexpr bool keeps_weights = kThreads < 1024;  // else registers are few
  Pack<W, n> weights[kPacks];
  if constexpr (keeps_weights) {
    each([&](int i, int col) { weights[i] = read<true, n>(w, col, cols); });
  }
  float dw[kPacks][n] = {};
  [[maybe_unused]] float largest = 0;
  for (int step = 0; step * kRows < num_rows; ++step) {
    wait_for_own_copies<Ring::kSteps - 1>();
    Pack<T, n> grads[kRows][kPacks], values[kRows][kPacks];
    float scales[kRows], dots[kRows] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      scales[r] = __shfl_sync(kAllLanes, rstd_of_lane, step * kRows + r);
    }
    each([&](int i, [[maybe_unused]] int col) {
      if constexpr (!keeps_weights) weights[i] = read<true, n>(w, col, cols);
      float weight[n];
      to_floats(weight, weights[i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        grads[r][i] = load_pack<n>(Ring::place(step, Ring::kDy, r, i));
        values[r][i] = load_pack<n>(Ring::place(step, Ring::kH, r, i));
        float grad[n], value[n];
        to_floats(grad, grads[r][i]);
        to_floats(value, values[r][i]);
        for (int j = 0; j < n; ++j) {
          const float product = grad[j] * value[j];
          dw[i][j] = fmaf(product, scales[r], dw[i][j]);
          dots[r] = fmaf(product, weight[j], dots[r]);
        }
      }
    });
    sum_over_warps(dots, step % 2);

    each([&](int i, int col) {
      if constexpr (!keeps_weights) weights[i] = read<true, n>(w, col, cols);
      float weight[n];
      to_floats(weight, weights[i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float scale = scales[r];
        const float along_h = scale * scale * scale * (dots[r] * inverse_cols);
        float grad[n], value[n], result[n];
        to_floats(grad, grads[r][i]);
        to_floats(value, values[r][i]);
        for (int j = 0; j < n; ++j) {
          result[j] = fmaf(-value[j], along_h, grad[j] * weight[j] * scale);
        }
        if constexpr (has_dh) {
          to_floats(value, load_pack<n>(Ring::place(step, Ring::kDh, r, i)));
          for (int j = 0; j < n; ++j) result[j] += value[j];
        }
        const int row = step * kRows + r;
        if (row < num_rows) {
          const Pack<T, n> rounded = from_floats<T>(result);
          if constexpr (finds) largest = larger(largest, rounded);
          write<true>(dx.at(begin + row), col, cols, rounded);
        }
      }
    });
    copy(step + Ring::kSteps);
  }
  each([&](int i, int col) {
    write<true>(partial + int64_t{blockIdx.x} * cols, col, cols, from_floats<float>(dw[i]));
  });
  if constexpr (finds) keep_largest(largest, found);
}

// The same of any rows, which are read where they are used, in elements.
template <typename T, typename W, bool finds>
__global__ void __launch_bounds__(1024, 1)
    backward_of_any(RowsOf<const T> dy, RowsOf<const T> dh, RowsOf<const T> h, const float* rstd,
                    const W* w, RowsOf<T> dx, float* partial, int64_t rows, int cols,
                    float inverse_cols, int num_packs, int group,
                    [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  constexpr int n = kPackOf<T>;
  const int64_t begin = int64_t{blockIdx.x} * group, end = std::min(rows, begin + group);
  [[maybe_unused]] float largest = 0;
  const auto each = [&](const auto& body) {
    for_packs<0, n>(static_cast<int>(threadIdx.x), num_packs, [&](int, int col) { body(col); });
  };
  for (int64_t row = begin; row < end; ++row) {
    const float scale = rstd[row];
    float dots[1] = {};
    float grad[n], value[n], weight[n];
    const auto fetch = [&](int col) {
      to_floats(grad, read<false, n>(dy.at(row), col, cols));
      to_floats(value, read<false, n>(h.at(row), col, cols));
      to_floats(weight, read<false, n>(w, col, cols));
    };
    each([&](int col) {
      fetch(col);
      for (int j = 0; j < n; ++j) dots[0] = fmaf(grad[j] * value[j], weight[j], dots[0]);
    });
    sum_over_warps(dots, static_cast<int>(row - begin) % 2);
    const float along_h = scale * scale * scale * (dots[0] * inverse_cols);
    each([&](int col) {
      fetch(col);
      float result[n];
      for (int j = 0; j < n; ++j) {
        result[j] = fmaf(-value[j], along_h, grad[j] * weight[j] * scale);
      }
      if (dh.data != nullptr) {
        to_floats(value, read<false, n>(dh.at(row), col, cols));
        for (int j = 0; j < n; ++j) result[j] += value[j];
      }
      const Pack<T, n> rounded = from_floats<T>(result);
      if constexpr (finds) largest = larger(largest, rounded);
      write<false>(dx.at(row), col, cols, rounded);
    });
  }
  each([&](int col) {
    float dw[n] = {};
    for (int64_t row = begin; row < end; ++row) {
      float grad[n], value[n];
      to_floats(grad, read<false, n>(dy.at(row), col, cols));
      to_floats(value, read<false, n>(h.at(row), col, cols));
      for (int j = 0; j < n; ++j) dw[j] = fmaf(grad[j] * value[j], rstd[row], dw[j]);
    }
    write<false>(partial + int64_t{blockIdx.x} * cols, col, cols, from_floats<float>(dw));
  });
  if constexpr (finds) keep_largest(largest, found);
}

// Of a block, such that one of 256 rows finds room beside those that it waits for.
constexpr int kTreeCols = 16;
constexpr unsigned kTreeWarps = 32;  // of a block at most
constexpr int kLeaves = 8;           // rows that a thread reads, all at once
template <int n>
constexpr int kLeavesOfWarp = 32 / (kTreeCols / n) * kLeaves;

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

template <typename T, typename W, bool finds>
void launch_any(const KernelCall& call, Spread spread, unsigned* found) {
  const View& dx = call.outputs[0];
  launch(call, num_groups(dx), spread.warps * 32, backward_of_any<T, W, finds>,
         rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]),
         rows_of<const T>(call.inputs[2]), call.inputs[3].as<const float>(),
         call.inputs[4].as<const W>(), rows_of<T>(dx), static_cast<float*>(call.scratch), dx.rows(),
         static_cast<int>(dx.cols()), 1.0f / static_cast<float>(dx.cols()), spread.packs,
         group_tokens(dx), found);
}

template <typename T, typename W, int kThreads, int kPacks, int kRows, bool finds>
void launch_aligned(const KernelCall& call, Spread spread, unsigned* found) {
  const View& dx = call.outputs[0];
  const int group = group_tokens(dx);
  const unsigned threads = spread.warps * 32;
  const auto launch_with = [&](auto has_dh) {
    const int bytes = Ring<T, kThreads, kPacks, kRows, has_dh>::bytes(group / kRows, threads);
    if (bytes > most_memory_of_block()) return launch_any<T, W, finds>(call, spread, found);
    launch_with_memory(call, num_groups(dx), threads, bytes,
                       backward<T, W, kThreads, kPacks, kRows, has_dh, finds>,
                       rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]),
                       rows_of<const T>(call.inputs[2]), call.inputs[3].as<const float>(),
                       call.inputs[4].as<const W>(), rows_of<T>(dx),
                       static_cast<float*>(call.scratch), dx.rows(), static_cast<int>(dx.cols()),
                       1.0f / static_cast<float>(dx.cols()), group, found);
  };
  call.has_input(1) ? launch_with(std::true_type()) : launch_with(std::false_type());
}

template <typename T, typename W, bool finds>
void run_finding(const KernelCall& call, unsigned* found) {
  const View& dx = call.outputs[0];
  const int64_t packs = blocks_for(dx.cols(), kPackOf<T>);
  const Spread spread = spread_over(packs, packs <= 256 ? 1 : 2);
  const unsigned threads = spread.warps * 32;
  if (!are_packable(kPackOf<T>, call.inputs[0], call.inputs[1], call.inputs[2], call.inputs[4],
                    dx) ||
      spread.packs > 2 || (threads > 512 && sizeof(W) > sizeof(T))) {
    return launch_any<T, W, finds>(call, spread, found);
  }
  if (spread.packs == 1) return launch_aligned<T, W, 256, 1, 2, finds>(call, spread, found);
  if (threads <= 256) return launch_aligned<T, W, 256, 2, 1, finds>(call, spread, found);
  if (threads <= 512) return launch_aligned<T, W, 512, 2, 1, finds>(call, spread, found);
  launch_aligned<T, W, 1024, 2, 1, finds>(call, spread, found);
}

template <typename T, typename W>
void run_as(const KernelCall& call) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (finds_largest(call.attrs)) {
      return run_finding<T, W, true>(call, start_largest(call, call.outputs.back()));
    }
  }
  run_finding<T, W, false>(call, nullptr);
}

// In one launch for up to 2,048 groups, or 512 where columns are no packs.
template <int n>
void add_all_groups(const KernelCall& call) {
  const int cols = static_cast<int>(call.outputs[0].cols());
  unsigned groups = num_groups(call.outputs[0]);
  int64_t distance = cols;
  for (bool is_last = false; !is_last;) {
    const unsigned warps = std::clamp(std::bit_ceil(groups) / kLeavesOfWarp<n>, 1u, kTreeWarps);
    const unsigned groups_of_block = warps * kLeavesOfWarp<n>;
    is_last = groups <= groups_of_block;
    launch(call, dim3(blocks_for(cols, kTreeCols), blocks_for(groups, groups_of_block)), warps * 32,
           add_groups<n>, static_cast<float*>(call.scratch), static_cast<int>(groups), distance,
           cols, is_last ? call.outputs[1].as<float>() : nullptr);
    groups = blocks_for(groups, groups_of_block);
    distance *= groups_of_block;
  }
}

}  // namespace

void run_rms_norm_backward(const KernelCall& call) {
  const View& dx = call.outputs[0];
  with_types(dx, call.inputs[4],
             [&](auto row, auto w) { run_as<decltype(row), decltype(w)>(call); });
  dx.cols() % 4 == 0 ? add_all_groups<4>(call) : add_all_groups<1>(call);
}

}  // namespace skein
