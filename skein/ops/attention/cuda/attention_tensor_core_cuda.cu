// A thread block has 64 rows (queries; for dk and dv, keys), each of its warps 16 of them. What is
// multiplied lies in shared memory, sums in registers: dk and dv fill them, so there two warps have
// the same rows, and each half of the columns.
//
// Source  Dao, "FlashAttention-2", arXiv:2307.08691
#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/own_positions_cuda.h"
#include "skein/ops/attention/cuda/tensor_core_tiles_cuda.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein::attention_cuda {
namespace {

using namespace cuda;         // NOLINT(google-build-using-namespace)
using namespace tensor_core;  // NOLINT(google-build-using-namespace)

// ---- forward

template <int kDims>
struct ForwardMemory {
  union {
    Matrix<kBlock, kDims> q;
    Floats scores[kWarps];  // and p, in bf16, in place of the first half of a row
  };
  Matrix<kBlock, kDims> terms;  // k, then v
  float factors[kBlock];
};
constexpr int kWeightsStride = Floats::kStride * 2;

// The softmax of a warp's rows, which turns scores into p. A lane has half a row.
struct RunningSoftmax {
  float largest = -INFINITY, total = 0;

  // Returns the factor for earlier sums.
  __device__ float advance(const Problem& problem, const int32_t* starts, int query, Range queries,
                           Range keys, Floats& scores) {
    constexpr int kHalf = kBlock / 2;
    const int half_col = lane() % 2 * kHalf;
    const float factor = problem.scale * kLog2E;
    const bool all = keys.end - keys.begin == kBlock && all_visible(problem, starts, queries, keys);
    // Keys up to `last` are visible where they belong to the query's document.
    const int start = query < queries.end ? starts[query] : 0;
    const int last = query >= queries.end                 ? -1
                     : problem.causal && query < keys.end ? query
                                                          : keys.end - 1;
    float values[kHalf];
    float most = -INFINITY;
#pragma unroll
    for (int i = 0; i < kHalf; i += 4) {
      const Pack<float, 4> pack = load_pack<4>(&scores.at[half_row()][half_col + i]);
      for (int j = 0; j < 4; ++j) {
        const int key = keys.begin + half_col + i + j;
        const bool visible = all || (key <= last && starts[key] == start);
        values[i + j] = visible ? pack.at[j] * factor : -INFINITY;
        most = Max()(most, values[i + j]);
      }
    }
    most = Max()(most, __shfl_xor_sync(kAllLanes, most, 1));
    most = Max()(most, largest);
    // Nothing visible yet: any finite number keeps NaN away.
    const float offset = most == -INFINITY ? 0 : most;
    const float shrink = exp2f(largest - offset);
    largest = most;
    total *= shrink;
    __syncwarp();  // the lane beside has read what is written here
    auto* row = reinterpret_cast<uint16_t*>(scores.at[half_row()]) + half_col;
#pragma unroll
    for (int i = 0; i < kHalf; i += 8) {
      Pack<uint16_t, 8> pack;
      for (int j = 0; j < 8; ++j) {
        const float p = exp2f(values[i + j] - offset);
        total += p;
        pack.at[j] = from_float<bfloat16>(p).bits;
      }
      store_pack(row + i, pack);
    }
    return shrink;
  }
  __device__ float sum() const { return total + __shfl_xor_sync(kAllLanes, total, 1); }
};

template <int n, int kDims>
__global__ void __launch_bounds__(kThreads, kDims == 64 ? 4 : 3) attend(Problem problem) {
  wait_for_previous_kernel();
  __shared__ ForwardMemory<kDims> memory;
  const auto [sequence, head, place] = unit_of(problem, problem.heads);
  // The last queries, which have the most keys, go first.
  const Range queries = problem.query_range(problem.num_query_blocks() - 1 - place);
  const Range own = own_positions(problem, sequence, queries);
  if (own.begin >= own.end) return;
  const int32_t* starts = problem.starts_of(sequence);
  const int64_t kv_col = int64_t{head / problem.group_size()} * problem.head_dim;
  const HeadRows q = {problem.q, problem.query_row(sequence, queries.begin),
                      int64_t{head} * problem.head_dim, queries.end - queries.begin};

  Floats& scores = memory.scores[warp()];
  float* const factors = &memory.factors[first_row_of_warp()];
  const Places places = find_places(scores);
  __syncthreads();
  load_rows<n, kThreads>(q, problem.head_dim, memory.q);
  wait_for_copies();
  Left left[kDims / kTile];
  load_left(memory.q, first_row_of_warp(), left);
  Sum sums[kDims / kTile];
  fill_zero(sums);
  RunningSoftmax softmax;
  const int query = queries.begin + first_row_of_warp() + half_row();
  const Range blocks = key_blocks_of(problem, starts, own);
  for (int block = blocks.begin; block < blocks.end; ++block) {
    const Range keys = problem.key_range(block);
    if (past_documents(starts, keys.begin, own.end - 1)) break;
    const int64_t key_row = problem.key_row(sequence, keys.begin);
    const int num_keys = keys.end - keys.begin;
    __syncthreads();
    load_rows<n, kThreads>({problem.k, key_row, kv_col, num_keys}, problem.head_dim, memory.terms);
    wait_for_copies();
#pragma unroll 1
    for (int first = 0; first < kBlock; first += kTile) {
      Sum product;
      multiply(left, memory.terms, first, product);
      wmma::store_matrix_sync(&scores.at[0][first], product, Floats::kStride, wmma::mem_row_major);
    }
    __syncthreads();
    load_rows<n, kThreads>({problem.v, key_row, kv_col, num_keys}, problem.head_dim, memory.terms);
    const float shrink = softmax.advance(problem, starts, query, queries, keys, scores);
    if (lane() % 2 == 0) factors[half_row()] = shrink;
    __syncwarp();
    for (int i = 0; i < Sum::num_elements; ++i) {
      const float factor = factors[places.row(i)];
      for (Sum& sum : sums) sum.x[i] *= factor;
    }
    wait_for_copies();
    accumulate<kBlock>(reinterpret_cast<const __nv_bfloat16*>(&scores), kWeightsStride,
                       memory.terms, 0, sums);
  }
  const float total = softmax.sum();
  if (lane() % 2 == 0 && query < queries.end && !problem.is_elsewhere(sequence, query)) {
    *row_at<float>(problem.lse, q.first_row + first_row_of_warp() + half_row(), head) =
        (softmax.largest + log2f(total)) * kLn2;
  }
  store_sums<n>(problem, sums, 0, 1 / total, scores, sequence, queries.begin,
                {problem.o, q.first_row, q.first_col, q.num_rows});
}

// ---- backward

// The logarithms of the softmax's sums, and delta, for a block of queries.
template <int count>
__device__ void load_statistics(const Problem& problem, int head, int64_t first_row, int num_rows,
                                float (&log2_sums)[count], float (&deltas)[count]) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= count) return;
  const bool inside = i < num_rows;
  log2_sums[i] = inside ? *row_at<float>(problem.lse, first_row + i, head) * kLog2E : 0;
  deltas[i] = inside ? problem.delta[(first_row + i) * problem.heads + head] : 0;
}

template <int kDims>
struct QueryMemory {
  union {
    struct {
      Matrix<kBlock, kDims> k, v;
    };
    struct {
      Matrix<kBlock, kDims> q, grad;  // before them
    };
    Floats floats[kWarps];  // before and after
  };
  Matrix<kTile, kBlock> ds[kWarps];
  float log2_sums[kBlock], deltas[kBlock];
};

template <int n, int kDims>
__global__ void __launch_bounds__(kThreads, kDims == 64 ? 3 : 2) sum_dq(Problem problem) {
  wait_for_previous_kernel();
  __shared__ QueryMemory<kDims> memory;
  const auto [sequence, head, place] = unit_of(problem, problem.heads);
  const Range queries = problem.query_range(problem.num_query_blocks() - 1 - place);
  const Range own = own_positions(problem, sequence, queries);
  if (own.begin >= own.end) return;
  const int32_t* starts = problem.starts_of(sequence);
  const int64_t kv_col = int64_t{head / problem.group_size()} * problem.head_dim;
  const HeadRows q = {problem.q, problem.query_row(sequence, queries.begin),
                      int64_t{head} * problem.head_dim, queries.end - queries.begin};

  const Places places = find_places(memory.floats[warp()]);
  __syncthreads();
  load_rows<n, kThreads>(q, problem.head_dim, memory.q);
  load_rows<n, kThreads>({problem.grad, q.first_row, q.first_col, q.num_rows}, problem.head_dim,
                         memory.grad);
  load_statistics(problem, head, q.first_row, q.num_rows, memory.log2_sums, memory.deltas);
  wait_for_copies();
  Left left_q[kDims / kTile], left_grad[kDims / kTile];
  load_left(memory.q, first_row_of_warp(), left_q);
  load_left(memory.grad, first_row_of_warp(), left_grad);
  Matrix<kTile, kBlock>& ds = memory.ds[warp()];
  Sum sums[kDims / kTile];
  fill_zero(sums);
  const float factor = problem.scale * kLog2E;
  const Range blocks = key_blocks_of(problem, starts, own);
  for (int block = blocks.begin; block < blocks.end; ++block) {
    const Range keys = problem.key_range(block);
    if (past_documents(starts, keys.begin, own.end - 1)) break;
    const int64_t key_row = problem.key_row(sequence, keys.begin);
    const int num_keys = keys.end - keys.begin;
    __syncthreads();
    load_rows<n, kThreads>({problem.k, key_row, kv_col, num_keys}, problem.head_dim, memory.k);
    load_rows<n, kThreads>({problem.v, key_row, kv_col, num_keys}, problem.head_dim, memory.v);
    wait_for_copies();
    const bool all = num_keys == kBlock && all_visible(problem, starts, queries, keys);
#pragma unroll 1
    for (int first = 0; first < kBlock; first += kTile) {
      Sum scores, products;
      multiply(left_q, memory.k, first, scores);
      multiply(left_grad, memory.v, first, products);
      for (int i = 0; i < Sum::num_elements; ++i) {
        const int row = first_row_of_warp() + places.row(i), col = first + places.col(i);
        const int query = queries.begin + row, key = keys.begin + col;
        const bool visible = all || (query < queries.end && key < keys.end &&
                                     is_visible(problem, starts, query, key));
        const float p = visible ? exp2f(scores.x[i] * factor - memory.log2_sums[row]) : 0;
        ds.bits[places.row(i)][col] =
            from_float<bfloat16>(p * (products.x[i] - memory.deltas[row])).bits;
      }
    }
    __syncwarp();
    accumulate<kBlock>(ds.at(0, 0), ds.kStride, memory.k, 0, sums);
  }
  __syncthreads();
  store_sums<n>(problem, sums, 0, problem.scale, memory.floats[warp()], sequence, queries.begin,
                {problem.dq, q.first_row, q.first_col, q.num_rows});
}

template <int kDims>
struct KeyMemory {
  union {
    struct {
      Matrix<kStep, kDims> q, grad;
    };
    Matrix<kBlock, kDims> keys;  // before them: k, then v
    Floats floats[2 * kWarps];   // before and after
  };
  Matrix<kTile, kStep> p[kWarps], ds[kWarps];
  float log2_sums[kStep], deltas[kStep];
};

template <int n, int kDims>
__global__ void __launch_bounds__(kKeyThreads, kDims == 64 ? 2 : 1) sum_dk_dv(Problem problem) {
  wait_for_previous_kernel();
  __shared__ KeyMemory<kDims> memory;
  // The first keys, which have the most queries, go first.
  const auto [sequence, kv_head, place] = unit_of(problem, problem.kv_heads);
  const Range keys = problem.key_range(place);
  const Range own = own_positions(problem, sequence, keys);
  if (own.begin >= own.end) return;
  const int32_t* starts = problem.starts_of(sequence);
  const HeadRows k = {problem.k, problem.key_row(sequence, keys.begin),
                      int64_t{kv_head} * problem.head_dim, keys.end - keys.begin};

  const Places places = find_places(memory.floats[warp()]);
  Left left_k[kDims / kTile], left_v[kDims / kTile];
  __syncthreads();
  load_rows<n, kKeyThreads>(k, problem.head_dim, memory.keys);
  wait_for_copies();
  load_left(memory.keys, first_row_of_warp(), left_k);
  __syncthreads();
  load_rows<n, kKeyThreads>({problem.v, k.first_row, k.first_col, k.num_rows}, problem.head_dim,
                            memory.keys);
  wait_for_copies();
  load_left(memory.keys, first_row_of_warp(), left_v);
  Matrix<kTile, kStep>&p = memory.p[warp() % kWarps], &ds = memory.ds[warp() % kWarps];
  const int half = warp() / kWarps, first_dim = half * (kDims / 2);
  Sum dk[kDims / 2 / kTile], dv[kDims / 2 / kTile];
  fill_zero(dk);
  fill_zero(dv);
  const float factor = problem.scale * kLog2E;

  const auto attend_to = [&](int head, Range queries) {
    const int num_queries = queries.end - queries.begin;
    const int64_t first_row = problem.query_row(sequence, queries.begin);
    const int64_t q_col = int64_t{head} * problem.head_dim;
    __syncthreads();
    load_rows<n, kKeyThreads>({problem.q, first_row, q_col, num_queries}, problem.head_dim,
                              memory.q);
    load_rows<n, kKeyThreads>({problem.grad, first_row, q_col, num_queries}, problem.head_dim,
                              memory.grad);
    load_statistics(problem, head, first_row, num_queries, memory.log2_sums, memory.deltas);
    wait_for_copies();
    const bool all = num_queries == kStep && keys.end - keys.begin == kBlock &&
                     all_visible(problem, starts, queries, keys);
    Sum scores, products;
    multiply(left_k, memory.q, half * kTile, scores);
    multiply(left_v, memory.grad, half * kTile, products);
    for (int i = 0; i < Sum::num_elements; ++i) {
      const int row = places.row(i), col = half * kTile + places.col(i);
      const int key = keys.begin + first_row_of_warp() + row, query = queries.begin + col;
      const bool visible =
          all || (query < queries.end && key < keys.end && is_visible(problem, starts, query, key));
      const float weight = visible ? exp2f(scores.x[i] * factor - memory.log2_sums[col]) : 0;
      p.bits[row][col] = from_float<bfloat16>(weight).bits;
      ds.bits[row][col] = from_float<bfloat16>(weight * (products.x[i] - memory.deltas[col])).bits;
    }
    __syncthreads();
    accumulate<kStep>(p.at(0, 0), p.kStride, memory.grad, first_dim, dv);
    accumulate<kStep>(ds.at(0, 0), ds.kStride, memory.q, first_dim, dk);
  };

  const int first_head = kv_head * problem.group_size();
  for (int head = first_head; head < first_head + problem.group_size(); ++head) {
    for (int span = 0; span < problem.num_spans(); ++span) {
      const Range blocks = query_blocks_of(problem, starts, span, own);
      for (int block = blocks.begin; block < blocks.end; ++block) {
        const Range queries = problem.query_range(block);
        if (past_documents(starts, queries.begin, own.end - 1)) break;
        for (int first = queries.begin; first < queries.end; first += kStep) {
          attend_to(head, {first, first + kStep < queries.end ? first + kStep : queries.end});
        }
      }
    }
  }
  __syncthreads();
  store_sums<n>(problem, dk, first_dim, problem.scale, memory.floats[warp()], sequence, keys.begin,
                {problem.dk, k.first_row, k.first_col, k.num_rows});
  store_sums<n>(problem, dv, first_dim, 1, memory.floats[warp()], sequence, keys.begin,
                {problem.dv, k.first_row, k.first_col, k.num_rows});
}

// ---- on the host

template <int n, int kDims>
void launch_forward(const KernelCall& call, const Problem& problem) {
  static_assert(sizeof(ForwardMemory<kDims>) <= 48 << 10);
  const int64_t heads = int64_t{problem.num_sequences} * problem.heads;
  launch(call, blocks_for(heads * problem.num_query_blocks(), 1), kThreads, attend<n, kDims>,
         problem);
}

template <int n, int kDims>
void launch_backward(const KernelCall& call, const Problem& problem) {
  static_assert(sizeof(QueryMemory<kDims>) <= 48 << 10 && sizeof(KeyMemory<kDims>) <= 48 << 10);
  const int64_t heads = int64_t{problem.num_sequences} * problem.heads;
  const int64_t kv_heads = int64_t{problem.num_sequences} * problem.kv_heads;
  launch(call, blocks_for(heads * problem.num_query_blocks(), 1), kThreads, sum_dq<n, kDims>,
         problem);
  launch(call, blocks_for(kv_heads * problem.num_key_blocks(), 1), kKeyThreads, sum_dk_dv<n, kDims>,
         problem);
}

}  // namespace

void run_tensor_core_forward(const KernelCall& call, const Problem& problem) {
  with_constants(problem,
                 [&](auto pack, auto dims) { launch_forward<pack(), dims()>(call, problem); });
}

void run_tensor_core_backward(const KernelCall& call, const Problem& problem) {
  with_constants(problem,
                 [&](auto pack, auto dims) { launch_backward<pack(), dims()>(call, problem); });
}

}  // namespace skein::attention_cuda
