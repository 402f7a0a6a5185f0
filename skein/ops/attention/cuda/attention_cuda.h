// Internal to the CUDA kernels of attention: the bound problem, and which pairs of it are visible.
//
// Work is cut by shape alone, and every sum has one order:
//   forward   a thread block has kBlock queries of one head, and walks over their keys; on Hopper
//             two such blocks, or three of heads of up to 64
//   backward  the same for dq; for dk and dv a thread block has kBlock keys of one kv head, and
//             walks over the query heads of its group and their queries; on Hopper two blocks of
//             queries, and two of keys
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "skein/ir/kernel.h"

namespace skein::attention_cuda {

constexpr int kBlock = 64;  // queries, and keys, of one block of scores
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

// Rows of an operand; elements are what the kernel says.
struct Rows {
  void* data = nullptr;
  int64_t stride = 0;
};
template <typename T>
__device__ T* row_at(const Rows& rows, int64_t row, int64_t col) {
  return static_cast<T*>(rows.data) + row * rows.stride + col;
}

struct Range {
  int begin, end;  // positions of a sequence
};

// The argument of every kernel.
struct Problem {
  Rows q, k, v, o, lse;
  Rows grad, dq, dk, dv;   // backward only
  float* delta = nullptr;  // backward only: do . o, [query rows, heads]
  const int32_t* start = nullptr;
  // By row: whether cuDNN computes its document. Null: none. Only with whole sequences, where q and
  // k have the same rows.
  const uint8_t* elsewhere = nullptr;
  int num_sequences = 0, sequence_length = 0;
  int part = 0, parts = 1;                    // of each sequence, the queries of this rank
  int heads = 0, kv_heads = 0, head_dim = 0;  // of this rank
  bool causal = true;
  bool documents = true;   // a sequence may have several; false: `start` is 0 everywhere
  bool repeatable = true;  // false: backward may add in any order
  float scale = 1;

  __host__ __device__ int group_size() const { return heads / kv_heads; }
  // The queries of a sequence lie in spans of adjacent positions: the whole sequence, or the two
  // pieces of zigzag order (ops/zigzag).
  __host__ __device__ int num_queries() const { return sequence_length / parts; }
  __host__ __device__ int num_spans() const { return parts > 1 ? 2 : 1; }
  __host__ __device__ int span_length() const { return num_queries() / num_spans(); }
  // Blocks of queries end with their span. Blocks may have another size than kBlock.
  __host__ __device__ int span_blocks(int size = kBlock) const {
    return (span_length() + size - 1) / size;
  }
  __host__ __device__ int span_begin(int span) const {
    return (span == 0 ? part : 2 * parts - 1 - part) * span_length();
  }
  __host__ __device__ int num_query_blocks(int size = kBlock) const {
    return num_spans() * span_blocks(size);
  }
  __host__ __device__ int num_key_blocks() const { return (sequence_length + kBlock - 1) / kBlock; }
  __host__ __device__ int64_t num_query_rows() const {
    return int64_t{num_sequences} * num_queries();
  }

  // The positions of a block of queries, and of one of keys.
  __device__ Range query_range(int block, int size = kBlock) const {
    const int blocks = span_blocks(size), span = block / blocks;
    const int end = span_begin(span) + span_length();
    const int first = span_begin(span) + block % blocks * size;
    return {first, first + size < end ? first + size : end};
  }
  __device__ Range key_range(int block, int size = kBlock) const {
    const int first = block * size;
    return {first, first + size < sequence_length ? first + size : sequence_length};
  }
  // The rows of q, o, lse and their gradients, and of k and v, that hold a position.
  __device__ int64_t query_row(int sequence, int position) const {
    const int span = num_spans() == 1 || position < span_begin(1) ? 0 : 1;
    return int64_t{sequence} * num_queries() + span * span_length() + position - span_begin(span);
  }
  __device__ int64_t key_row(int sequence, int position) const {
    return int64_t{sequence} * sequence_length + position;
  }

  __device__ bool is_elsewhere(int sequence, int position) const {
    return elsewhere != nullptr && elsewhere[key_row(sequence, position)] != 0;
  }
  __device__ const int32_t* starts_of(int sequence) const {
    return start + int64_t{sequence} * sequence_length;
  }
};

// The first position of the document of `position`, within bounds whatever `starts` holds.
__device__ inline int document_begin(const int32_t* starts, int position) {
  const int begin = starts[position];
  return begin < 0 ? 0 : begin < position ? begin : position;
}

// The position after the last of the document of `position`, within bounds whatever `starts` holds.
__device__ inline int document_end(const Problem& problem, const int32_t* starts, int position) {
  if (!problem.documents) return problem.sequence_length;
  int end = problem.sequence_length;  // or before it; all up to `inside` are of the document
  for (int inside = position; end - inside > 1;) {
    const int middle = inside + (end - inside) / 2;
    (starts[middle] > starts[position] ? end : inside) = middle;
  }
  return end;
}
// The keys that a query sees.
__device__ inline Range visible_keys(const Problem& problem, const int32_t* starts, int query) {
  return {problem.documents ? document_begin(starts, query) : 0,
          problem.causal ? query + 1 : document_end(problem, starts, query)};
}

// Blocks of keys in order, [begin, end): those that the queries may see. Without causality the walk
// ends where past_documents() says so.
__device__ inline Range key_blocks_of(const Problem& problem, const int32_t* starts, Range queries,
                                      int size = kBlock) {
  const int end = problem.causal ? queries.end : problem.sequence_length;
  return {document_begin(starts, queries.begin) / size, (end + size - 1) / size};
}
// Whether all positions from `begin` on are of later documents than `last`.
__device__ inline bool past_documents(const int32_t* starts, int begin, int last) {
  return begin > last && starts[begin] > starts[last];
}
// Blocks of a span's queries that may see the keys, in order; the walk ends as above.
__device__ inline Range query_blocks_of(const Problem& problem, const int32_t* starts, int span,
                                        Range keys, int size = kBlock) {
  const int first = problem.causal ? keys.begin : document_begin(starts, keys.begin);
  const int ahead = first - problem.span_begin(span), blocks = problem.span_blocks(size);
  const int begin = ahead < 0 ? 0 : ahead / size < blocks ? ahead / size : blocks;
  return {span * blocks + begin, (span + 1) * blocks};
}
// Whether every query of a block sees every key of another.
__device__ inline bool all_visible(const Problem& problem, const int32_t* starts, Range queries,
                                   Range keys) {
  const int first = queries.begin < keys.begin ? queries.begin : keys.begin;
  const int last = (queries.end > keys.end ? queries.end : keys.end) - 1;
  return starts[first] == starts[last] && (!problem.causal || keys.end <= queries.begin + 1);
}

// Adjacent rows of one head.
struct HeadRows {
  const Rows& rows;
  int64_t first_row, first_col;
  int num_rows;
};

// Whose kernels SKEIN_ATTENTION in the environment asks for; the fastest ones where it is unset.
// Errors  Error{kUsage} for other words than plain, wgmma, cudnn
enum class Way { kFastest, kPlain, kWarpgroups, kCudnn };
Way wanted_way();

// Of the current device: 10 times the major number, and the minor one.
int compute_capability();

// Whether each head of each row is whole packs of `n` elements of `bytes`.
bool are_heads_packable(int n, int bytes, const Problem& problem);

// lse as [sequences, heads, sequence_length], of a problem with `parts` == 1.
void pack_lse(const KernelCall& call, const Problem& problem, float* packed);

// Problem::delta; zeros for rows that are computed elsewhere.
void sum_delta(const KernelCall& call, const Problem& problem);

// Our own kernels. sum_delta() comes before backward. Without tensor cores: f32 and bf16.
constexpr int kMaxHeadDim = 256;
void run_scalar_forward(const KernelCall& call, const Problem& problem);
void run_scalar_backward(const KernelCall& call, const Problem& problem);

// On tensor cores: bf16.
constexpr int kMaxTensorCoreHeadDim = 128;
void run_tensor_core_forward(const KernelCall& call, const Problem& problem);
void run_tensor_core_backward(const KernelCall& call, const Problem& problem);

// On the warpgroups of Hopper: the same, where the build and the GPU have them.
// Errors  Error{kUnsupported} where SKEIN_ATTENTION=wgmma, and they are not there
bool has_warpgroups();
bool is_for_warpgroups(DType dtype, const Problem& problem);
void run_warpgroup_forward(const KernelCall& call, const Problem& problem);
void run_warpgroup_backward(const KernelCall& call, const Problem& problem);

}  // namespace skein::attention_cuda
