// Each thread holds kRows x kCols of a block's 64 x 64 scores, and the same rows of what is summed
// over the keys (or queries): threads of 16 columns share their rows, in one half of a warp.
//
// Source  Dao, "FlashAttention-2", arXiv:2307.08691
#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/own_positions_cuda.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein::attention_cuda {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kColumnThreads = 16;
constexpr int kThreads = kColumnThreads * kColumnThreads;
constexpr int kRows = kBlock / kColumnThreads, kCols = kRows;
static_assert(kRows == 4);
constexpr int kPadded = kBlock + 4;  // fewer bank conflicts, and packs of 4 floats stay aligned
constexpr int kChunkDims = 32;       // of head_dim, for scores
constexpr int kUnrolled = 8;         // of them
constexpr int kChunkTerms = 16;      // of the keys (or queries) that are summed over

using Scores = float[kRows][kCols];
using Floats = Pack<float, 4>;

// Shared memory of a thread block.
struct alignas(32) Tiles {
  // Two operands of scores, transposed, or rows to be summed.
  union {
    float operands[2][kChunkDims][kPadded];
    float terms[kChunkTerms][kMaxHeadDim];
  };
  float weights[kBlock][kPadded];  // [key (or query) that is summed over][row]
};
static_assert(sizeof(Tiles) <= 48 << 10);

__device__ int thread_row() { return static_cast<int>(threadIdx.x) / kColumnThreads * kRows; }
__device__ int thread_col() { return static_cast<int>(threadIdx.x) % kColumnThreads * kCols; }

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

// kChunkDims of head_dim.
template <typename T, int n>
__device__ void load_transposed(const HeadRows& from, int head_dim, int first_dim,
                                float (&to)[kChunkDims][kPadded]) {
  for (int i = static_cast<int>(threadIdx.x); i < kBlock * kChunkDims / n; i += kThreads) {
    const int row = i % kBlock, dim = i / kBlock * n;
    const Pack<float, n> floats = load_floats<T, n>(from.rows, from.first_row, from.first_col,
                                                    head_dim, from.num_rows, row, first_dim + dim);
    for (int j = 0; j < n; ++j) to[dim + j][row] = floats.at[j];
  }
}

// scores = left right^T. Begins with a barrier: nobody uses the tiles any more.
template <typename T, int n>
__device__ void multiply(Tiles& tiles, const HeadRows& left, const HeadRows& right, int head_dim,
                         Scores& scores) {
  for (auto& row : scores) {
    for (float& score : row) score = 0;
  }
  for (int first_dim = 0; first_dim < head_dim; first_dim += kChunkDims) {
    __syncthreads();
    load_transposed<T, n>(left, head_dim, first_dim, tiles.operands[0]);
    load_transposed<T, n>(right, head_dim, first_dim, tiles.operands[1]);
    __syncthreads();
    const int dims = head_dim - first_dim < kChunkDims ? head_dim - first_dim : kChunkDims;
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

__device__ void store_weights(Tiles& tiles, const Scores& weights) {
  for (int j = 0; j < kCols; ++j) {
    Floats column;
    for (int i = 0; i < kRows; ++i) column.at[i] = weights[i][j];
    store_pack(&tiles.weights[thread_col() + j][thread_row()], column);
  }
}

// kDims of each of the thread's rows: 4 adjacent of every 64.
template <int kDims>
using Sums = float[kRows][kDims / kColumnThreads];

// sums += weights * terms, in the order of the terms. The weights that were stored just before need
// no barrier between.
template <typename T, int n, int kDims>
__device__ void accumulate(Tiles& tiles, const HeadRows& terms, int head_dim, Sums<kDims>& sums) {
  for (int first = 0; first < terms.num_rows; first += kChunkTerms) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kChunkTerms * kDims / n; i += kThreads) {
      const int row = i / (kDims / n), dim = i % (kDims / n) * n;
      store_pack(&tiles.terms[row][dim],
                 load_floats<T, n>(terms.rows, terms.first_row, terms.first_col, head_dim,
                                   terms.num_rows, first + row, dim));
    }
    __syncthreads();
#pragma unroll 4
    for (int term = 0; term < kChunkTerms; ++term) {
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

// sums * factors, to the rows of a sequence that begin at `first_position`.
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

// -infinity for the pairs that may not see each other or lie beyond the blocks. `rows` are queries
// and the columns keys, or the other way round.
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

// ---- forward

template <typename T, int n, int kDims>
__global__ void __launch_bounds__(kThreads, kDims == 64 ? 2 : 1) attend(Problem problem) {
  __shared__ Tiles tiles;
  // The last queries, which have the most keys, go first.
  const int num_heads = problem.num_sequences * problem.heads;
  const int unit = static_cast<int>(blockIdx.x) % num_heads;
  const int sequence = unit / problem.heads, head = unit % problem.heads;
  const int block = problem.num_query_blocks() - 1 - static_cast<int>(blockIdx.x) / num_heads;
  const int head_dim = problem.head_dim;
  const int32_t* starts = problem.starts_of(sequence);
  const Range queries = problem.query_range(block);
  const Range own = own_positions(problem, sequence, queries);
  if (own.begin >= own.end) return;
  const int num_queries = queries.end - queries.begin;
  const int64_t first_row = problem.query_row(sequence, queries.begin);
  const int64_t kv_col = int64_t{head} / problem.group_size() * head_dim;
  const int64_t q_col = int64_t{head} * head_dim;

  float largest[kRows], total[kRows];  // total: of this thread's columns
  Sums<kDims> sums = {};
  for (int i = 0; i < kRows; ++i) {
    largest[i] = -INFINITY;
    total[i] = 0;
  }
  const float factor = problem.scale * kLog2E;
  const Range blocks = key_blocks_of(problem, starts, own);
  for (int key_block = blocks.begin; key_block < blocks.end; ++key_block) {
    const Range keys = problem.key_range(key_block);
    if (past_documents(starts, keys.begin, own.end - 1)) break;
    const int64_t key_row = problem.key_row(sequence, keys.begin);
    const int num_keys = keys.end - keys.begin;
    Scores scores;
    multiply<T, n>(tiles, {problem.q, first_row, q_col, num_queries},
                   {problem.k, key_row, kv_col, num_keys}, head_dim, scores);
    mask_scores<true>(problem, starts, queries, keys, scores);
    for (int i = 0; i < kRows; ++i) {
      float most = scores[i][0];
      for (int j = 1; j < kCols; ++j) most = Max()(most, scores[i][j]);
      most = Max()(largest[i], reduce_columns(most, Max()) * factor);
      // Nothing visible yet: any finite number keeps NaN away.
      const float offset = most == -INFINITY ? 0 : most;
      const float shrink = exp2f(largest[i] - offset);
      largest[i] = most;
      total[i] *= shrink;
      for (float& sum : sums[i]) sum *= shrink;
      for (int j = 0; j < kCols; ++j) {
        scores[i][j] = exp2f(scores[i][j] * factor - offset);
        total[i] += scores[i][j];
      }
    }
    store_weights(tiles, scores);
    accumulate<T, n, kDims>(tiles, {problem.v, key_row, kv_col, num_keys}, head_dim, sums);
  }
  float factors[kRows];
  for (int i = 0; i < kRows; ++i) {
    total[i] = reduce_columns(total[i], Sum());
    factors[i] = 1 / total[i];
    const int row = thread_row() + i;
    if (thread_col() == 0 && row < num_queries &&
        !problem.is_elsewhere(sequence, queries.begin + row)) {
      *row_at<float>(problem.lse, first_row + row, head) = (largest[i] + log2f(total[i])) * kLn2;
    }
  }
  store_sums<T, n, kDims>(problem, sums, factors, sequence, queries.begin,
                          {problem.o, first_row, q_col, num_queries});
}

// ---- backward

// p and ds of a block of scores, which `scores` and `products` (do . v) become. `log2_sum` and
// `delta` are of the pair's query.
__device__ void differentiate(float factor, float log2_sum, float delta, float& score,
                              float& product) {
  score = exp2f(score * factor - log2_sum);
  product = score * (product - delta);
}

template <typename T, int n, int kDims>
__global__ void __launch_bounds__(kThreads, kDims == 64 ? 2 : 1) sum_dq(Problem problem) {
  __shared__ Tiles tiles;
  const int num_heads = problem.num_sequences * problem.heads;
  const int unit = static_cast<int>(blockIdx.x) % num_heads;
  const int sequence = unit / problem.heads, head = unit % problem.heads;
  const int block = problem.num_query_blocks() - 1 - static_cast<int>(blockIdx.x) / num_heads;
  const int head_dim = problem.head_dim;
  const int32_t* starts = problem.starts_of(sequence);
  const Range queries = problem.query_range(block);
  const Range own = own_positions(problem, sequence, queries);
  if (own.begin >= own.end) return;
  const int num_queries = queries.end - queries.begin;
  const int64_t first_row = problem.query_row(sequence, queries.begin);
  const int64_t kv_col = int64_t{head} / problem.group_size() * head_dim;
  const int64_t q_col = int64_t{head} * head_dim;

  float log2_sum[kRows], delta[kRows];
  for (int i = 0; i < kRows; ++i) {
    const int64_t row = first_row + thread_row() + i;
    const bool inside = thread_row() + i < num_queries;
    log2_sum[i] = inside ? *row_at<float>(problem.lse, row, head) * kLog2E : 0;
    delta[i] = inside ? problem.delta[row * problem.heads + head] : 0;
  }
  Sums<kDims> sums = {};
  const float factor = problem.scale * kLog2E;
  const Range blocks = key_blocks_of(problem, starts, own);
  for (int key_block = blocks.begin; key_block < blocks.end; ++key_block) {
    const Range keys = problem.key_range(key_block);
    if (past_documents(starts, keys.begin, own.end - 1)) break;
    const int64_t key_row = problem.key_row(sequence, keys.begin);
    const int num_keys = keys.end - keys.begin;
    Scores scores, products;
    multiply<T, n>(tiles, {problem.q, first_row, q_col, num_queries},
                   {problem.k, key_row, kv_col, num_keys}, head_dim, scores);
    multiply<T, n>(tiles, {problem.grad, first_row, q_col, num_queries},
                   {problem.v, key_row, kv_col, num_keys}, head_dim, products);
    mask_scores<true>(problem, starts, queries, keys, scores);
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kCols; ++j) {
        differentiate(factor, log2_sum[i], delta[i], scores[i][j], products[i][j]);
      }
    }
    store_weights(tiles, products);
    accumulate<T, n, kDims>(tiles, {problem.k, key_row, kv_col, num_keys}, head_dim, sums);
  }
  const float scale = problem.scale;
  store_sums<T, n, kDims>(problem, sums, {scale, scale, scale, scale}, sequence, queries.begin,
                          {problem.dq, first_row, q_col, num_queries});
}

template <typename T, int n, int kDims>
__global__ void __launch_bounds__(kThreads, kDims == 64 ? 2 : 1) sum_dk_dv(Problem problem) {
  __shared__ Tiles tiles;
  // The first keys, which have the most queries, go first.
  const int num_heads = problem.num_sequences * problem.kv_heads;
  const int unit = static_cast<int>(blockIdx.x) % num_heads;
  const int sequence = unit / problem.kv_heads, kv_head = unit % problem.kv_heads;
  const int head_dim = problem.head_dim;
  const int32_t* starts = problem.starts_of(sequence);
  const Range keys = problem.key_range(static_cast<int>(blockIdx.x) / num_heads);
  const Range own = own_positions(problem, sequence, keys);
  if (own.begin >= own.end) return;
  const int num_keys = keys.end - keys.begin;
  const int64_t key_row = problem.key_row(sequence, keys.begin);
  const int64_t kv_col = int64_t{kv_head} * head_dim;

  Sums<kDims> dk = {}, dv = {};
  const float factor = problem.scale * kLog2E;
  const int first_head = kv_head * problem.group_size();
  for (int head = first_head; head < first_head + problem.group_size(); ++head) {
    const int64_t q_col = int64_t{head} * head_dim;
    for (int span = 0; span < problem.num_spans(); ++span) {
      const Range blocks = query_blocks_of(problem, starts, span, own);
      for (int block = blocks.begin; block < blocks.end; ++block) {
        const Range queries = problem.query_range(block);
        if (past_documents(starts, queries.begin, own.end - 1)) break;
        const int64_t first_row = problem.query_row(sequence, queries.begin);
        const int num_queries = queries.end - queries.begin;
        Scores scores, products;
        multiply<T, n>(tiles, {problem.k, key_row, kv_col, num_keys},
                       {problem.q, first_row, q_col, num_queries}, head_dim, scores);
        multiply<T, n>(tiles, {problem.v, key_row, kv_col, num_keys},
                       {problem.grad, first_row, q_col, num_queries}, head_dim, products);
        mask_scores<false>(problem, starts, keys, queries, scores);
        for (int j = 0; j < kCols; ++j) {
          const int64_t row = first_row + thread_col() + j;
          const bool inside = thread_col() + j < num_queries;
          const float log2_sum = inside ? *row_at<float>(problem.lse, row, head) * kLog2E : 0;
          const float delta = inside ? problem.delta[row * problem.heads + head] : 0;
          for (int i = 0; i < kRows; ++i) {
            differentiate(factor, log2_sum, delta, scores[i][j], products[i][j]);
          }
        }
        store_weights(tiles, scores);
        accumulate<T, n, kDims>(tiles, {problem.grad, first_row, q_col, num_queries}, head_dim, dv);
        __syncthreads();  // weights are still being read
        store_weights(tiles, products);
        accumulate<T, n, kDims>(tiles, {problem.q, first_row, q_col, num_queries}, head_dim, dk);
      }
    }
  }
  const float scale = problem.scale;
  store_sums<T, n, kDims>(problem, dk, {scale, scale, scale, scale}, sequence, keys.begin,
                          {problem.dk, key_row, kv_col, num_keys});
  store_sums<T, n, kDims>(problem, dv, {1, 1, 1, 1}, sequence, keys.begin,
                          {problem.dv, key_row, kv_col, num_keys});
}

// ---- on the host

template <typename T, int n, int kDims>
void launch_forward(const KernelCall& call, const Problem& problem) {
  const int64_t heads = int64_t{problem.num_sequences} * problem.heads;
  launch(call, blocks_for(heads * problem.num_query_blocks(), 1), kThreads, attend<T, n, kDims>,
         problem);
}

template <typename T, int n, int kDims>
void launch_backward(const KernelCall& call, const Problem& problem) {
  const int64_t heads = int64_t{problem.num_sequences} * problem.heads;
  const int64_t kv_heads = int64_t{problem.num_sequences} * problem.kv_heads;
  launch(call, blocks_for(heads * problem.num_query_blocks(), 1), kThreads, sum_dq<T, n, kDims>,
         problem);
  launch(call, blocks_for(kv_heads * problem.num_key_blocks(), 1), kThreads, sum_dk_dv<T, n, kDims>,
         problem);
}

// Calls `function` with the constants (element type, elements of a pack, padded head_dim). bf16 of
// smaller heads is for the tensor cores.
template <typename Function>
void with_constants(DType dtype, const Problem& problem, const Function& function) {
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    const auto with_dims = [&](auto pack) {
      if constexpr (std::is_same_v<T, float>) {
        if (problem.head_dim <= 64) return function(type, pack, std::integral_constant<int, 64>());
        if (problem.head_dim <= 128) {
          return function(type, pack, std::integral_constant<int, 128>());
        }
      }
      function(type, pack, std::integral_constant<int, kMaxHeadDim>());
    };
    if (are_heads_packable(kPackOf<T>, sizeof(T), problem)) {
      with_dims(std::integral_constant<int, kPackOf<T>>());
    } else {
      with_dims(std::integral_constant<int, 1>());
    }
  });
}

}  // namespace

void run_plain_forward(const KernelCall& call, const Problem& problem) {
  with_constants(call.outputs[0].dtype, problem, [&](auto type, auto pack, auto dims) {
    launch_forward<decltype(type), pack(), dims()>(call, problem);
  });
}

void run_plain_backward(const KernelCall& call, const Problem& problem) {
  with_constants(call.outputs[0].dtype, problem, [&](auto type, auto pack, auto dims) {
    launch_backward<decltype(type), pack(), dims()>(call, problem);
  });
}

}  // namespace skein::attention_cuda
