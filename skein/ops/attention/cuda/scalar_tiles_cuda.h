// Blocks of scores without tensor cores, and what is summed over them. Each thread holds kRows x
// kCols of a block's 64 x 64 scores, and the same rows of the sums over keys (or queries). The 16
// threads that share rows lie in one half of a warp.
//
// Source  Dao, "FlashAttention-2", arXiv:2307.08691
#pragma once

#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein::attention_cuda::scalar {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kColumnThreads = 16;
constexpr int kThreads = kColumnThreads * kColumnThreads;
constexpr int kRows = kBlock / kColumnThreads, kCols = kRows;
static_assert(kRows == 4);
constexpr int kPadded = kBlock + 4;  // fewer bank conflicts, and packs of 4 floats stay aligned
constexpr int kTileDims = 32;        // dims of a head that a tile of operands has, for scores
constexpr int kUnrolled = 8;         // of these dims
constexpr int kTileTerms = 16;       // keys (or queries) that a tile of terms has, for sums

using Scores = float[kRows][kCols];
using Floats = Pack<float, 4>;

// Shared memory of a thread block.
struct alignas(32) Tiles {
  // Two operands of scores, transposed, or rows to be summed.
  union {
    float operands[2][kTileDims][kPadded];
    float terms[kTileTerms][kMaxHeadDim];
  };
  float weights[kBlock][kPadded];  // [key (or query) that is summed over][row]
};
static_assert(sizeof(Tiles) <= 48 << 10);

__device__ inline int thread_row() {
  return static_cast<int>(threadIdx.x) / kColumnThreads * kRows;
}
__device__ inline int thread_col() {
  return static_cast<int>(threadIdx.x) % kColumnThreads * kCols;
}

// Adjacent elements of a row of head_dim, as floats; zeros beyond the rows and the columns.
template <typename T, int n>
__device__ Pack<float, n> load_floats(const Rows& from, int64_t first_row, int64_t first_col,
                                      int head_dim, int num_rows, int row, int dim) {
  Pack<float, n> floats = {};
  if (row >= num_rows || dim >= head_dim) return floats;
  const Pack<T, n> pack = load_pack<n>(row_at<const T>(from, first_row + row, first_col + dim));
  for (int i = 0; i < n; ++i) floats.at[i] = to_float(pack.at[i]);
  return floats;
}

// Loads kTileDims dims of a block of rows.
template <typename T, int n>
__device__ void load_transposed(const HeadRows& from, int head_dim, int first_dim,
                                float (&to)[kTileDims][kPadded]) {
  for (int i = static_cast<int>(threadIdx.x); i < kBlock * kTileDims / n; i += kThreads) {
    const int row = i % kBlock, dim = i / kBlock * n;
    const Pack<float, n> floats = load_floats<T, n>(from.rows, from.first_row, from.first_col,
                                                    head_dim, from.num_rows, row, first_dim + dim);
    for (int j = 0; j < n; ++j) to[dim + j][row] = floats.at[j];
  }
}

// scores = left right^T. It begins with a barrier, after which no thread reads the tiles any more.
template <typename T, int n>
__device__ void multiply(Tiles& tiles, const HeadRows& left, const HeadRows& right, int head_dim,
                         Scores& scores) {
  for (auto& row : scores) {
    for (float& score : row) score = 0;
  }
  for (int first_dim = 0; first_dim < head_dim; first_dim += kTileDims) {
    __syncthreads();
    load_transposed<T, n>(left, head_dim, first_dim, tiles.operands[0]);
    load_transposed<T, n>(right, head_dim, first_dim, tiles.operands[1]);
    __syncthreads();
    const int dims = head_dim - first_dim < kTileDims ? head_dim - first_dim : kTileDims;
    for (int first = 0; first < dims; first += kUnrolled) {
#pragma unroll
      for (int dim = first; dim < first + kUnrolled; ++dim) {
        const Floats a = load_pack<4>(&tiles.operands[0][dim][thread_row()]);
        const Floats b = load_pack<4>(&tiles.operands[1][dim][thread_col()]);
        for (int i = 0; i < kRows; ++i) {
          for (int j = 0; j < kCols; ++j) scores[i][j] += a.at[i] * b.at[j];
        }
      }
    }
  }
}

__device__ inline void store_weights(Tiles& tiles, const Scores& weights) {
  for (int j = 0; j < kCols; ++j) {
    Floats column;
    for (int i = 0; i < kRows; ++i) column.at[i] = weights[i][j];
    store_pack(&tiles.weights[thread_col() + j][thread_row()], column);
  }
}

// A thread has, of each of its rows of kDims, 4 adjacent dims of every 64.
template <int kDims>
using Sums = float[kRows][kDims / kColumnThreads];

// sums += weights * terms, in the order of the terms. It begins with a barrier, so that weights may
// be stored right before.
template <typename T, int n, int kDims>
__device__ void accumulate(Tiles& tiles, const HeadRows& terms, int head_dim, Sums<kDims>& sums) {
  for (int first = 0; first < terms.num_rows; first += kTileTerms) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kTileTerms * kDims / n; i += kThreads) {
      const int row = i / (kDims / n), dim = i % (kDims / n) * n;
      store_pack(&tiles.terms[row][dim],
                 load_floats<T, n>(terms.rows, terms.first_row, terms.first_col, head_dim,
                                   terms.num_rows, first + row, dim));
    }
    __syncthreads();
#pragma unroll 4
    for (int term = 0; term < kTileTerms; ++term) {
      const Floats weights = load_pack<4>(&tiles.weights[first + term][thread_row()]);
      for (int part = 0; part < kDims / kBlock; ++part) {
        const Floats values = load_pack<4>(&tiles.terms[term][part * kBlock + thread_col()]);
        for (int i = 0; i < kRows; ++i) {
          for (int j = 0; j < 4; ++j) sums[i][part * 4 + j] += weights.at[i] * values.at[j];
        }
      }
    }
  }
}

// Stores sums * factors in the rows of a sequence that begin at `first_position`.
template <typename T, int n, int kDims>
__device__ void store_sums(const Problem& problem, const Sums<kDims>& sums,
                           const float (&factors)[kRows], int sequence, int first_position,
                           const HeadRows& to) {
  for (int i = 0; i < kRows; ++i) {
    const int row = thread_row() + i;
    if (row >= to.num_rows) break;
    if (problem.is_elsewhere(sequence, first_position + row)) continue;
    for (int part = 0; part < kDims / kBlock; ++part) {
      const int dim = part * kBlock + thread_col();
      T* at = row_at<T>(to.rows, to.first_row + row, to.first_col + dim);
      Pack<T, 4> pack;
      for (int j = 0; j < 4; ++j) pack.at[j] = from_float<T>(sums[i][part * 4 + j] * factors[i]);
      if constexpr (n > 1) {
        if (dim < problem.head_dim) store_pack(at, pack);
      } else {
        for (int j = 0; j < 4 && dim + j < problem.head_dim; ++j) at[j] = pack.at[j];
      }
    }
  }
}

// The sum or maximum over the threads that share rows.
template <typename Op>
__device__ float reduce_columns(float value, Op op) {
  for (int mask = kColumnThreads / 2; mask > 0; mask /= 2) {
    value = op(value, __shfl_xor_sync(kAllLanes, value, mask));
  }
  return value;
}

// Sets -infinity for the pairs that may not see each other or lie beyond the blocks. Rows are
// queries and columns keys, or the other way round.
template <bool rows_are_queries>
__device__ void mask_scores(const Problem& problem, const int32_t* starts, Range rows, Range cols,
                            Scores& scores) {
  const Range queries = rows_are_queries ? rows : cols, keys = rows_are_queries ? cols : rows;
  if (rows.end - rows.begin == kBlock && cols.end - cols.begin == kBlock &&
      all_visible(problem, starts, queries, keys)) {
    return;
  }
  int col_starts[kCols];
  for (int j = 0; j < kCols; ++j) {
    const int col = cols.begin + thread_col() + j;
    col_starts[j] = col < cols.end ? starts[col] : -1;
  }
  for (int i = 0; i < kRows; ++i) {
    const int row = rows.begin + thread_row() + i;
    const int row_start = row < rows.end ? starts[row] : -2;
    for (int j = 0; j < kCols; ++j) {
      const int col = cols.begin + thread_col() + j;
      const bool in_order = rows_are_queries ? col <= row : row <= col;
      if (row_start != col_starts[j] || (problem.causal && !in_order)) scores[i][j] = -INFINITY;
    }
  }
}

}  // namespace skein::attention_cuda::scalar
