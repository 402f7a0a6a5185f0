// Attention without tensor cores, on blocks of scalar_tiles_cuda.h: f32, and bf16 of large heads.
#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/own_positions_cuda.h"
#include "skein/ops/attention/cuda/scalar_tiles_cuda.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein::attention_cuda {
namespace {

using namespace scalar;  // NOLINT(google-build-using-namespace)

// ---- forward

template <typename T, int n, int kDims>
__global__ void __launch_bounds__(kThreads, kDims == 64 ? 2 : 1) attend(Problem problem) {
  wait_for_previous_kernel();
  __shared__ Tiles tiles;
  const auto [sequence, head, place] = unit_of(problem, problem.heads);
  const int head_dim = problem.head_dim;
  const int32_t* starts = problem.starts_of(sequence);
  // The last queries, which have the most keys, go first.
  const Range queries = problem.query_range(problem.num_query_blocks() - 1 - place);
  const Range own = own_positions(problem, sequence, queries);
  if (own.begin >= own.end) return;
  const int num_queries = queries.end - queries.begin;
  const int64_t first_row = problem.query_row(sequence, queries.begin);
  const int64_t kv_col = int64_t{head} / problem.group_size() * head_dim;
  const int64_t q_col = int64_t{head} * head_dim;

  float largest[kRows], total[kRows];  // `total` is the sum over this thread's columns
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

// Turns the score of a pair into its weight p, and its product do . v into ds. `log2_sum` and
// `delta` belong to the pair's query.
__device__ void differentiate(float factor, float log2_sum, float delta, float& score,
                              float& product) {
  score = exp2f(score * factor - log2_sum);
  product = score * (product - delta);
}

template <typename T, int n, int kDims>
__global__ void __launch_bounds__(kThreads, kDims == 64 ? 2 : 1) sum_dq(Problem problem) {
  wait_for_previous_kernel();
  __shared__ Tiles tiles;
  const auto [sequence, head, place] = unit_of(problem, problem.heads);
  const int head_dim = problem.head_dim;
  const int32_t* starts = problem.starts_of(sequence);
  const Range queries = problem.query_range(problem.num_query_blocks() - 1 - place);
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
  wait_for_previous_kernel();
  __shared__ Tiles tiles;
  const auto [sequence, kv_head, place] = unit_of(problem, problem.kv_heads);
  const int head_dim = problem.head_dim;
  const int32_t* starts = problem.starts_of(sequence);
  // The first keys, which have the most queries, go first.
  const Range keys = problem.key_range(place);
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

void run_scalar_forward(const KernelCall& call, const Problem& problem) {
  with_constants(call.outputs[0].dtype, problem, [&](auto type, auto pack, auto dims) {
    launch_forward<decltype(type), pack(), dims()>(call, problem);
  });
}

void run_scalar_backward(const KernelCall& call, const Problem& problem) {
  with_constants(call.outputs[0].dtype, problem, [&](auto type, auto pack, auto dims) {
    launch_backward<decltype(type), pack(), dims()>(call, problem);
  });
}

}  // namespace skein::attention_cuda
