#include <algorithm>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

// A row is spread over warps, and each thread of a warp has some packs of n columns. With kPacks >
// 0 a thread has so many, and they are aligned. With 0 it has any number, which may be unaligned
// and are read at each use. How a row is spread, and so the bits, depends on its length alone.
template <int kPacks, int n, typename Body>
__device__ void for_packs(int thread, int num_packs, const Body& body) {
  const int packs = kPacks > 0 ? kPacks : num_packs;
  const int first = (thread / 32 * packs * 32 + thread % 32) * n;
#pragma unroll
  for (int i = 0; i < packs; ++i) body(kPacks > 0 ? i : 0, first + i * (32 * n));
}

// Columns beyond the row's end read as 0.
template <bool is_aligned, int n, typename T>
__device__ Pack<T, n> read(const T* row, int col, int cols) {
  if constexpr (is_aligned) return load_pack_or<n>(T{}, col < cols, row + col);
  Pack<T, n> pack = {};
  for (int i = 0; i < n && col + i < cols; ++i) pack.at[i] = row[col + i];
  return pack;
}
template <bool is_aligned, typename T, int n>
__device__ void write(T* row, int col, int cols, const Pack<T, n>& pack) {
  if constexpr (is_aligned) {
    if (col < cols) store_pack_global(row + col, pack);
  } else {
    for (int i = 0; i < n && col + i < cols; ++i) row[col + i] = pack.at[i];
  }
}

struct Spread {
  unsigned warps;
  int packs;  // of a thread
};
Spread spread_over(int64_t all_packs, int packs) {
  while (all_packs > int64_t{packs} * 1024) ++packs;
  return {blocks_for(all_packs, int64_t{packs} * 32), packs};
}

// ---- forward ----

constexpr int kWarpsOfRows = 4;  // a block, where a warp has a whole row

// A block computes one row, or each of its warps one.
template <typename T, typename W, int kPacks, bool one_warp, bool has_delta>
__global__ void __launch_bounds__(kPacks > 0 ? 512 : 1024, 1)
    forward(RowsOf<const T> x, RowsOf<const T> delta, const W* w, RowsOf<T> y, RowsOf<T> h,
            float* rstd, int64_t rows, int cols, float inverse_cols, int num_packs, float epsilon) {
  constexpr int n = kPackOf<T>, kSlots = std::max(kPacks, 1);
  constexpr bool is_kept = kPacks > 0;
  const int thread = one_warp ? threadIdx.x % 32 : threadIdx.x;
  const int64_t row =
      one_warp ? int64_t{blockIdx.x} * kWarpsOfRows + threadIdx.x / 32 : int64_t{blockIdx.x};
  if (row >= rows) return;

  Pack<T, n> values[kSlots], deltas[kSlots];
  Pack<W, n> weights[kSlots];
  const auto each = [&](const auto& body) { for_packs<kPacks, n>(thread, num_packs, body); };
  const auto fetch = [&](int i, int col) {
    values[i] = read<is_kept, n>(x.at(row), col, cols);
    if constexpr (has_delta) deltas[i] = read<is_kept, n>(delta.at(row), col, cols);
    weights[i] = read<is_kept, n>(w, col, cols);
  };
  if constexpr (is_kept) each(fetch);

  float squares = 0;
  each([&](int i, int col) {
    if constexpr (!is_kept) fetch(i, col);
    float value[n];
    to_floats(value, values[i]);
    if constexpr (has_delta) {
      float added[n];
      to_floats(added, deltas[i]);
      for (int j = 0; j < n; ++j) value[j] += added[j];
      values[i] = from_floats<T>(value);
      to_floats(value, values[i]);
      write<is_kept>(h.at(row), col, cols, values[i]);
    }
    for (int j = 0; j < n; ++j) squares = fmaf(value[j], value[j], squares);
  });
  const float sum = one_warp ? warp_reduce(squares, Sum()) : block_sum(squares);
  const float scale = 1.0f / sqrtf(fmaf(sum, inverse_cols, epsilon));
  if (thread == 0) rstd[row] = scale;

  each([&](int i, int col) {
    if constexpr (!is_kept) {
      values[i] = read<is_kept, n>(has_delta ? h.at(row) : x.at(row), col, cols);
      weights[i] = read<is_kept, n>(w, col, cols);
    }
    float value[n], weight[n];
    to_floats(value, values[i]);
    to_floats(weight, weights[i]);
    for (int j = 0; j < n; ++j) value[j] = value[j] * scale * weight[j];
    write<is_kept>(y.at(row), col, cols, from_floats<T>(value));
  });
}

template <typename T, typename W, int kPacks, bool one_warp>
void launch_forward(const KernelCall& call, Spread spread) {
  const View& y = call.outputs[0];
  const unsigned rows_of_block = one_warp ? kWarpsOfRows : 1;
  launch(call, blocks_for(y.rows(), rows_of_block), spread.warps * 32 * rows_of_block,
         call.has_input(1) ? forward<T, W, kPacks, one_warp, true>
                           : forward<T, W, kPacks, one_warp, false>,
         rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]),
         call.inputs[2].as<const W>(), rows_of<T>(y), rows_of<T>(call.outputs[1]),
         call.outputs[2].as<float>(), y.rows(), static_cast<int>(y.cols()),
         1.0f / static_cast<float>(y.cols()), spread.packs,
         static_cast<float>(call.attrs.real("epsilon")));
}

template <typename T, typename W>
void run_as(const KernelCall& call) {
  const View& y = call.outputs[0];
  const int64_t packs = blocks_for(y.cols(), kPackOf<T>);
  const Spread spread = spread_over(packs, packs <= 128 || packs > 1024 ? 4 : 2);
  if (!are_packable(kPackOf<T>, call.inputs[0], call.inputs[1], call.inputs[2], y,
                    call.outputs[1]) ||
      spread.warps > 16) {
    return launch_forward<T, W, 0, false>(call, spread);
  }
  if (spread.warps == 1) return launch_forward<T, W, 4, true>(call, spread);
  spread.packs == 2 ? launch_forward<T, W, 2, false>(call, spread)
                    : launch_forward<T, W, 4, false>(call, spread);
}

// run_as with the C++ types of the rows and the weight.
template <typename Function>
void with_types(const View& rows, const View& weight, const Function& function) {
  with_type(rows.dtype,
            [&](auto row) { with_type(weight.dtype, [&](auto w) { function(row, w); }); });
}

void run(const KernelCall& call) {
  with_types(call.outputs[0], call.inputs[2],
             [&](auto row, auto w) { run_as<decltype(row), decltype(w)>(call); });
}

// ---- backward ----

// Tokens of one partial sum of dw: enough that writing it is little beside reading them. The sums
// are added as a binary tree, which has those of 64 tokens among its nodes.
int group_tokens(const View& dx) { return dx.cols() * size_of(dx.dtype) <= 1024 ? 8 : 16; }

// Wider weights take more registers.
template <typename T, typename W>
constexpr int kMostThreads = sizeof(W) > sizeof(T) ? 512 : 1024;

// Asks for a row of whole packs to be brought into the L2 cache.
template <typename T>
__device__ void prefetch([[maybe_unused]] const T* row, [[maybe_unused]] int cols) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(row)),
               "r"(cols * static_cast<int>(sizeof(T))));
#endif
}

// A block has one group of tokens, of which it takes kRows at once. dy and h are read twice, the
// second time out of the L1 cache, since keeping them would leave registers for fewer blocks. So
// would reading the next rows early: they are brought nearer, into the L2 cache.
template <typename T, typename W, int kPacks, int kRows, bool has_dh>
__global__ void __launch_bounds__(kRows > 1    ? 256
                                  : kPacks > 0 ? kMostThreads<T, W>
                                               : 1024,
                                  kRows > 1 ? 2 : 1)
    backward(RowsOf<const T> dy, RowsOf<const T> dh, RowsOf<const T> h, const float* rstd,
             const W* w, RowsOf<T> dx, float* partial, int64_t rows, int cols, float inverse_cols,
             int num_packs, int group) {
  constexpr int n = kPackOf<T>, kSlots = std::max(kPacks, 1);
  constexpr bool is_kept = kPacks > 0;
  const int64_t begin = int64_t{blockIdx.x} * group;
  const int num_rows = static_cast<int>(std::min(rows - begin, int64_t{group}));
  const auto each = [&](const auto& body) {
    for_packs<kPacks, n>(static_cast<int>(threadIdx.x), num_packs, body);
  };

  float dw[kSlots][n] = {};
  for (int first = 0; first < num_rows; first += kRows) {
    const auto is_row = [&](int r) { return r == 0 || first + r < num_rows; };
    const auto row_of = [&](int r) { return begin + first + (is_row(r) ? r : 0); };
    Pack<T, n> dys[kRows][kSlots], hs[kRows][kSlots], dhs[kRows][kSlots];
    Pack<W, n> weights[kSlots];
    const auto fetch = [&](int i, int col) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        dys[r][i] = read<is_kept, n>(dy.at(row_of(r)), col, cols);
        hs[r][i] = read<is_kept, n>(h.at(row_of(r)), col, cols);
      }
      weights[i] = read<is_kept, n>(w, col, cols);
    };
    const auto fetch_dh = [&](int i, int col) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if constexpr (has_dh) dhs[r][i] = read<is_kept, n>(dh.at(row_of(r)), col, cols);
      }
    };

    float scale[kRows], dots[kRows] = {};
    for (int r = 0; r < kRows; ++r) scale[r] = rstd[row_of(r)];
    if constexpr (is_kept) each(fetch), each(fetch_dh);
    each([&](int i, int col) {
      if constexpr (!is_kept) fetch(i, col);
      float weight[n];
      to_floats(weight, weights[i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float grad[n], value[n];
        to_floats(grad, dys[r][i]);
        to_floats(value, hs[r][i]);
        const float counted = is_row(r) ? scale[r] : 0.0f;
        for (int j = 0; j < n; ++j) {
          const float product = grad[j] * value[j];
          if constexpr (is_kept) dw[i][j] = fmaf(product, counted, dw[i][j]);
          dots[r] = fmaf(product, weight[j], dots[r]);
        }
      }
    });
    if constexpr (is_kept) {
      const int next = first + kRows + static_cast<int>(threadIdx.x);
      if (threadIdx.x < kRows && next < num_rows) {
        prefetch(dy.at(begin + next), cols);
        prefetch(h.at(begin + next), cols);
        if constexpr (has_dh) prefetch(dh.at(begin + next), cols);
      }
    }
    block_sums(dots);

    if constexpr (is_kept) each(fetch);
    each([&](int i, int col) {
      if constexpr (!is_kept) fetch(i, col), fetch_dh(i, col);
      float weight[n];
      to_floats(weight, weights[i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float along_h = scale[r] * scale[r] * scale[r] * (dots[r] * inverse_cols);
        float grad[n], value[n], result[n];
        to_floats(grad, dys[r][i]);
        to_floats(value, hs[r][i]);
        for (int j = 0; j < n; ++j) {
          result[j] = fmaf(-value[j], along_h, grad[j] * weight[j] * scale[r]);
        }
        if constexpr (has_dh) {
          to_floats(value, dhs[r][i]);
          for (int j = 0; j < n; ++j) result[j] += value[j];
        }
        if (is_row(r)) {
          write<is_kept>(dx.at(row_of(r)), col, cols, from_floats<T>(result));
        }
      }
    });
  }

  each([&](int i, int col) {
    if constexpr (!is_kept) {
      for (int j = 0; j < n; ++j) dw[i][j] = 0;
      for (int64_t row = begin; row < begin + num_rows; ++row) {
        float grad[n], value[n];
        to_floats(grad, read<is_kept, n>(dy.at(row), col, cols));
        to_floats(value, read<is_kept, n>(h.at(row), col, cols));
        for (int j = 0; j < n; ++j) dw[i][j] = fmaf(grad[j] * value[j], rstd[row], dw[i][j]);
      }
    }
    write<is_kept>(partial + int64_t{blockIdx.x} * cols, col, cols, from_floats<float>(dw[i]));
  });
}

constexpr int kTreeWarps = 32;  // of a block, which has 32 columns
constexpr int kTreeLeaves = 8;  // that a thread reads at once

// sum[col] += partial[0][col] + partial[1][col] + ... as a binary tree. Each warp of a block has
// `leaves_of_warp` rows of partial, a power of two.
__global__ void __launch_bounds__(kTreeWarps * 32, 1)
    add_groups(const float* partial, int64_t groups, int64_t cols, int64_t leaves_of_warp,
               float* sum) {
  __shared__ float of_warps[kTreeWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t col = int64_t{blockIdx.x} * 32 + lane;
  constexpr int kLevels = 16;
  float left[kLevels];  // of each level, the sum that waits for the one to its right
  float value = 0;
  for (int64_t leaf = 0; leaf < leaves_of_warp; leaf += kTreeLeaves) {
    float leaves[kTreeLeaves];
#pragma unroll
    for (int i = 0; i < kTreeLeaves; ++i) {
      const int64_t group = warp * leaves_of_warp + leaf + i;
      leaves[i] = group < groups && col < cols ? partial[group * cols + col] : 0.0f;
    }
#pragma unroll
    for (int gap = 1; gap < kTreeLeaves; gap *= 2) {
      for (int i = 0; i < kTreeLeaves; i += 2 * gap) leaves[i] += leaves[i + gap];
    }
    value = leaves[0];
    bool is_waiting = false;
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
      if (is_waiting) continue;
      is_waiting = (leaf / kTreeLeaves >> level & 1) == 0;
      if (is_waiting) {
        left[level] = value;
      } else {
        value = left[level] + value;
      }
    }
  }
  of_warps[warp][lane] = value;
  for (int gap = 1; gap < kTreeWarps; gap *= 2) {
    __syncthreads();
    if (warp % (2 * gap) == 0) of_warps[warp][lane] += of_warps[warp + gap][lane];
  }
  if (warp == 0 && col < cols) sum[col] += of_warps[0][lane];
}

int64_t num_groups(const KernelCall& call) {
  const View& dx = call.outputs[0];
  return blocks_for(dx.rows(), group_tokens(dx));
}

int64_t backward_scratch_bytes(const KernelCall& call) {
  return num_groups(call) * call.outputs[0].cols() * static_cast<int64_t>(sizeof(float));
}

template <typename T, typename W, int kPacks, int kRows>
void launch_backward(const KernelCall& call, Spread spread) {
  const View& dx = call.outputs[0];
  launch(call, static_cast<unsigned>(num_groups(call)), spread.warps * 32,
         call.has_input(1) ? backward<T, W, kPacks, kRows, true>
                           : backward<T, W, kPacks, kRows, false>,
         rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]),
         rows_of<const T>(call.inputs[2]), call.inputs[3].as<const float>(),
         call.inputs[4].as<const W>(), rows_of<T>(dx), static_cast<float*>(call.scratch), dx.rows(),
         static_cast<int>(dx.cols()), 1.0f / static_cast<float>(dx.cols()), spread.packs,
         group_tokens(dx));
}

template <typename T, typename W>
void run_backward_as(const KernelCall& call) {
  const View& dx = call.outputs[0];
  const int64_t packs = blocks_for(dx.cols(), kPackOf<T>);
  const Spread spread = spread_over(packs, packs <= 256 ? 1 : 2);
  if (!are_packable(kPackOf<T>, call.inputs[0], call.inputs[1], call.inputs[2], call.inputs[4],
                    dx) ||
      spread.packs > 2 || spread.warps * 32 > kMostThreads<T, W>) {
    return launch_backward<T, W, 0, 1>(call, spread);
  }
  if (spread.packs == 1) return launch_backward<T, W, 1, 4>(call, spread);
  spread.warps <= 8 ? launch_backward<T, W, 2, 2>(call, spread)
                    : launch_backward<T, W, 2, 1>(call, spread);
}

void run_backward(const KernelCall& call) {
  with_types(call.outputs[0], call.inputs[4],
             [&](auto row, auto w) { run_backward_as<decltype(row), decltype(w)>(call); });
  int64_t leaves_of_warp = kTreeLeaves;
  while (leaves_of_warp * kTreeWarps < num_groups(call)) leaves_of_warp *= 2;
  const int64_t cols = call.outputs[0].cols();
  launch(call, blocks_for(cols, 32), kTreeWarps * 32, add_groups,
         static_cast<const float*>(call.scratch), num_groups(call), cols, leaves_of_warp,
         call.outputs[1].as<float>());
}

}  // namespace

void add_rms_norm_cuda_kernels(KernelTable& table) {
  table["rms_norm"] = {.run = run};
  table["rms_norm_backward"] = {.run = run_backward, .scratch_bytes = backward_scratch_bytes};
}

}  // namespace skein
