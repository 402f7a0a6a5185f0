// Forward on Hopper. Each warpgroup of a thread block has 64 queries of a head; the block walks over
// their keys. q, and some blocks of k and v ahead, are in shared memory; scores, weights and sums are
// in registers. head_dim is padded to 64 or 128 with zeros.
//
// In each turn the tensor cores get the scores of one block and the sums with the weights of the
// block before, so that they work while the softmax of the scores is computed.
//
// Source  Shah et al., "FlashAttention-3", arXiv:2407.08608, its overlap within a warpgroup
#include <cstdlib>
#include <string>

#include "skein/base/error.h"
#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/own_positions_cuda.h"
#include "skein/ops/attention/cuda/running_softmax_cuda.h"
#include "skein/ops/attention/cuda/tensor_core_tiles_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/shared_memory_cuda.h"

namespace skein::attention_cuda {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)
using tensor_core::copy_pack, tensor_core::unit_of;
using warpgroup::Panels;

// How work is cut for a head_dim of up to kDims.
template <int kDims>
struct Cut {
  static constexpr int kWarpgroups = 2;
  static constexpr int kThreads = 128 * kWarpgroups;
  static constexpr int kQueries = 64 * kWarpgroups;
  static constexpr int kKeys = kDims == 64 ? 64 : 128;   // of a turn
  static constexpr int kStages = 3;                      // blocks of k, and of v, in shared memory
  static constexpr int kResident = kDims == 64 ? 2 : 1;  // thread blocks on a multiprocessor
};

template <int kDims>
struct Memory {
  using Cut = attention_cuda::Cut<kDims>;
  Panels<Cut::kQueries, kDims> q;
  Panels<Cut::kKeys, kDims> k[Cut::kStages], v[Cut::kStages];
};

// Zeros beyond the rows and head_dim. Complete after publish_copies().
template <int n, int threads, int rows, int cols>
__device__ void load_panels(const HeadRows& from, int head_dim, Panels<rows, cols>& to) {
  constexpr int kPacks = cols / n, kRowsAtOnce = threads / kPacks;
  static_assert(threads % kPacks == 0 && kRowsAtOnce > 0);
  const int first = static_cast<int>(threadIdx.x) / kPacks;
  const int col = static_cast<int>(threadIdx.x) % kPacks * n;
  const int num_rows = col < head_dim ? from.num_rows : 0;
  const auto* at = row_at<const uint16_t>(from.rows, from.first_row + first, from.first_col + col);
  uint16_t* const to_first = to.at(first, col);
  static_assert(kRowsAtOnce % 8 == 0 || n == 1);  // rows apart are swizzled alike
#pragma unroll 8
  for (int i = 0; i < (rows + kRowsAtOnce - 1) / kRowsAtOnce; ++i) {
    const int row = first + i * kRowsAtOnce;
    if (rows % kRowsAtOnce != 0 && row >= rows) break;
    copy_pack<n>(n > 1 ? to_first + i * kRowsAtOnce * warpgroup::kPanel : to.at(row, col), at,
                 row < num_rows);
    at += kRowsAtOnce * from.rows.stride;
  }
}
__device__ inline void commit_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Products see the copies of all threads, but those of the last `pending` groups; and all threads
// have ended the turn before.
template <int pending>
__device__ void publish_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
  warpgroup::publish_to_products();
  __syncthreads();
}

__device__ inline uint32_t pair_of(float low, float high) {
  return from_float<bfloat16>(low).bits | uint32_t{from_float<bfloat16>(high).bits} << 16;
}

// Begins scores = q k', of the warpgroup's rows of q.
template <int rows, int keys, int dims, int count>
__device__ void score(const Panels<rows, dims>& q, int first_row, const Panels<keys, dims>& k,
                      float (&scores)[count]) {
#pragma unroll
  for (int dim = 0; dim < dims; dim += warpgroup::kDepth) {
    warpgroup::multiply<true>(scores, warpgroup::left_rows(q, first_row, dim),
                              warpgroup::rows_transposed(k, dim), dim > 0);
  }
  warpgroup::commit();
}
// Begins sums += weights v.
template <int keys, int dims, int count>
__device__ void accumulate(const uint32_t (&weights)[keys / 4], const Panels<keys, dims>& v,
                           float (&sums)[count]) {
#pragma unroll
  for (int key = 0; key < keys; key += warpgroup::kDepth) {
    warpgroup::multiply<false>(sums, weights + key / 4, warpgroup::rows_as_they_are(v, key), true);
  }
  warpgroup::commit();
}

template <int count>
__device__ void round_in_pairs(const float (&scores)[2 * count], uint32_t (&weights)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) weights[i] = pair_of(scores[2 * i], scores[2 * i + 1]);
}

// A lane's two rows of o.
template <int n, int count>
__device__ void store_row(const Problem& problem, const float (&sums)[count], int half,
                          float factor, int64_t row, int64_t first_col) {
#pragma unroll
  for (int i = half * 2; i < count; i += 4) {
    const int col = warpgroup::column_of(i);
    uint16_t* const to = row_at<uint16_t>(problem.o, row, first_col + col);
    const uint32_t pair = pair_of(sums[i] * factor, sums[i + 1] * factor);
    if constexpr (n > 1) {
      if (col < problem.head_dim) *reinterpret_cast<uint32_t*>(to) = pair;
    } else {
      if (col < problem.head_dim) to[0] = static_cast<uint16_t>(pair);
      if (col + 1 < problem.head_dim) to[1] = static_cast<uint16_t>(pair >> 16);
    }
  }
}

template <int n, int kDims>
__global__ void __launch_bounds__(Cut<kDims>::kThreads, Cut<kDims>::kResident)
    attend(Problem problem) {
  using Cut = attention_cuda::Cut<kDims>;
  constexpr int kKeys = Cut::kKeys, kAhead = Cut::kStages - 1;
  auto& memory = dynamic_memory<Memory<kDims>>();
  const auto [sequence, head, place] = unit_of(problem, problem.heads);
  // The last queries, which have the most keys, go first.
  const int last_block = problem.num_query_blocks(Cut::kQueries) - 1;
  const Range queries = problem.query_range(last_block - place, Cut::kQueries);
  const Range own = own_positions(problem, sequence, queries);
  if (own.begin >= own.end) return;
  const int32_t* starts = problem.starts_of(sequence);
  const int64_t kv_col = int64_t{head / problem.group_size()} * problem.head_dim;
  const int64_t first_row = problem.query_row(sequence, queries.begin);
  const int64_t first_col = int64_t{head} * problem.head_dim;
  const int begin = document_begin(starts, own.begin) / kKeys;
  const int end = (visible_keys(problem, starts, own.end - 1).end + kKeys - 1) / kKeys;

  const auto load_block = [&](const Rows& rows, int block, Panels<kKeys, kDims>* stages) {
    if (block < begin || block >= end) return;
    const int first = block * kKeys;
    load_panels<n, Cut::kThreads>(
        {rows, problem.key_row(sequence, first), kv_col, problem.sequence_length - first},
        problem.head_dim, stages[block % Cut::kStages]);
  };
  // What the turn of a block multiplies.
  const auto load = [&](int block) {
    load_block(problem.k, block, memory.k);
    load_block(problem.v, block - 1, memory.v);
    commit_copies();
  };
  load_panels<n, Cut::kThreads>({problem.q, first_row, first_col, queries.end - queries.begin},
                                problem.head_dim, memory.q);
  for (int block = begin; block < begin + kAhead; ++block) load(block);

  // The lane's rows; those beyond the last query are not stored.
  const int first_of_warpgroup = static_cast<int>(threadIdx.x) / 128 * 64;
  int row[kRows];
  Range visible[kRows];
#pragma unroll
  for (int half = 0; half < kRows; ++half) {
    row[half] = first_of_warpgroup + warpgroup::row_of_lane() + half * 8;
    const int query = queries.begin + row[half];
    visible[half] = visible_keys(problem, starts, query < queries.end ? query : queries.end - 1);
  }

  RunningSoftmax softmax{problem.scale * kLog2E};
  float scores[kKeys / 2], sums[kDims / 2], shrink[kRows];
  uint32_t weights[kKeys / 4];
#pragma unroll
  for (float& sum : sums) sum = 0;
  const auto weigh = [&](int block) {
    const int first = block * kKeys;
    const bool all = visible[1].begin <= first && first + kKeys <= visible[0].end;
    if (!__all_sync(kAllLanes, all)) hide(visible, first, scores);
    softmax.advance(scores, shrink);
  };

  publish_copies<kAhead - 1>();
  warpgroup::fence();
  score(memory.q, first_of_warpgroup, memory.k[begin % Cut::kStages], scores);
  load(begin + kAhead);
  warpgroup::wait();
  weigh(begin);
  round_in_pairs(scores, weights);
  for (int block = begin + 1; block < end; ++block) {
    publish_copies<kAhead - 1>();
    warpgroup::fence();
    score(memory.q, first_of_warpgroup, memory.k[block % Cut::kStages], scores);
    accumulate(weights, memory.v[(block - 1) % Cut::kStages], sums);
    load(block + kAhead);
    warpgroup::wait<1>();
    weigh(block);
    warpgroup::wait();
#pragma unroll
    for (int i = 0; i < kDims / 2; ++i) sums[i] *= shrink[i / 2 % kRows];
    round_in_pairs(scores, weights);
  }
  publish_copies<kAhead - 1>();
  warpgroup::fence();
  accumulate(weights, memory.v[(end - 1) % Cut::kStages], sums);
  warpgroup::wait();

#pragma unroll
  for (int half = 0; half < kRows; ++half) {
    const int query = queries.begin + row[half];
    const float total = softmax.sum(half), lse = softmax.lse(half);
    if (query >= queries.end || problem.is_elsewhere(sequence, query)) continue;
    if (threadIdx.x % 4 == 0) *row_at<float>(problem.lse, first_row + row[half], head) = lse;
    store_row<n>(problem, sums, half, 1 / total, first_row + row[half], first_col);
  }
}

template <int n, int kDims>
void launch_forward(const KernelCall& call, const Problem& problem) {
  using Cut = attention_cuda::Cut<kDims>;
  const int64_t heads = int64_t{problem.num_sequences} * problem.heads;
  launch_with_memory(call, blocks_for(heads * problem.num_query_blocks(Cut::kQueries), 1),
                     Cut::kThreads, sizeof(Memory<kDims>), attend<n, kDims>, problem);
}

template <int n>
void run(const KernelCall& call, const Problem& problem) {
  if (problem.head_dim <= 64) {
    launch_forward<n, 64>(call, problem);
  } else {
    launch_forward<n, kMaxTensorCoreHeadDim>(call, problem);
  }
}

bool is_wanted() {
  static const char* const wanted = std::getenv("SKEIN_ATTENTION");
  return wanted != nullptr && std::string(wanted) == "wgmma";
}

void check_device() {
#if !defined(SKEIN_WGMMA) && !defined(SKEIN_CUDA_EMULATED)
  fail(ErrorCode::kUnsupported,
       "SKEIN_ATTENTION=wgmma, but this build has no kernels for it: build with "
       "SKEIN_CUDA_ARCHITECTURES=90, or unset SKEIN_ATTENTION");
#endif
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "the compute capability");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
        "the compute capability");
  if (major != 9 || minor != 0) {
    fail(ErrorCode::kUnsupported,
         "SKEIN_ATTENTION=wgmma, but GPU {} has compute capability {}.{}: only 9.0 has these "
         "instructions; unset SKEIN_ATTENTION",
         device, major, minor);
  }
}

}  // namespace

bool is_for_warpgroups(DType dtype, const Problem& problem) {
  return is_wanted() && dtype == DType::kBF16 && problem.head_dim <= kMaxTensorCoreHeadDim;
}

void run_warpgroup_forward(const KernelCall& call, const Problem& problem) {
  check_device();
  constexpr int kPack = kPackOf<bfloat16>;
  if (are_heads_packable(kPack, sizeof(bfloat16), problem)) {
    run<kPack>(call, problem);
  } else {
    run<1>(call, problem);
  }
}

}  // namespace skein::attention_cuda
