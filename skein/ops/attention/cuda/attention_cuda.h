// Internal to the CUDA kernels of attention: which pairs of the bound problem are visible.
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
#include "skein/ops/attention/cuda/attention_problem.h"
#include "skein/ops/attention/cuda/attention_scratch.h"

namespace skein::attention_cuda {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

template <typename T>
__device__ T* row_at(const Rows& rows, int64_t row, int64_t col) {
  return static_cast<T*>(rows.data) + row * rows.stride + col;
}

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

// On tensor cores: bf16, heads of up to kMaxTensorCoreHeadDim.
void run_tensor_core_forward(const KernelCall& call, const Problem& problem);
void run_tensor_core_backward(const KernelCall& call, const Problem& problem);

// On the warpgroups of Hopper: the same, where the build and the GPU have them.
// Errors  Error{kUnsupported} where SKEIN_ATTENTION=wgmma, and they are not there
bool has_warpgroups();
// Whether scratch is planned for them: on such a GPU, and as in a build without CUDA where there is
// no GPU, or the emulated one.
bool plans_for_warpgroups();
bool is_for_warpgroups(DType dtype, const Problem& problem);
void run_warpgroup_forward(const KernelCall& call, const Problem& problem);
void run_warpgroup_backward(const KernelCall& call, const Problem& problem);

}  // namespace skein::attention_cuda
