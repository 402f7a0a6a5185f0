// Forward on Hopper. A thread block is one warpgroup and has 64 queries of a head. p and all sums are
// in registers; q, k and v are in shared memory, and while one of k and v is multiplied the other
// comes.
// head_dim is padded to 64 or 128 with zeros.
//
// Source  Dao, "FlashAttention-2", arXiv:2307.08691
#include <cstdlib>
#include <string>

#include "skein/base/error.h"
#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/own_positions_cuda.h"
#include "skein/ops/attention/cuda/tensor_core_tiles_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein::attention_cuda {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)
using tensor_core::copy_pack, tensor_core::unit_of;
using warpgroup::Panels;

constexpr int kThreads = 128;
constexpr int kRows = 2;                        // a lane has two rows, 8 apart
constexpr int kScores = kBlock * kBlock / 128;  // of a lane

// Zeros beyond the rows and head_dim. Complete after wait_for_panels().
template <int n, int cols>
__device__ void load_panels(const HeadRows& from, int head_dim, Panels<kBlock, cols>& to) {
  constexpr int kPacks = cols / n;
  static_assert(kBlock * kPacks % kThreads == 0);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kBlock * kPacks; i += kThreads) {
    const int row = i / kPacks, col = i % kPacks * n;
    copy_pack<n>(to.at(row, col),
                 row_at<const uint16_t>(from.rows, from.first_row + row, from.first_col + col),
                 row < from.num_rows && col < head_dim);
  }
}
__device__ inline void wait_for_panels() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  warpgroup::publish_to_products();
  __syncthreads();
}

__device__ inline uint32_t pair_of(float low, float high) {
  return from_float<bfloat16>(low).bits | uint32_t{from_float<bfloat16>(high).bits} << 16;
}

// The softmax of a lane's two rows; four adjacent lanes share them.
struct RunningSoftmax {
  float largest[kRows] = {-INFINITY, -INFINITY}, total[kRows] = {};

  // scores become weights; sums so far shrink with what was the largest score.
  template <int count>
  __device__ void advance(const Problem& problem, const int32_t* starts, Range queries, Range keys,
                          float (&scores)[kScores], float (&sums)[count]) {
    const float factor = problem.scale * kLog2E;
    const bool all = keys.end - keys.begin == kBlock && all_visible(problem, starts, queries, keys);
#pragma unroll
    for (int half = 0; half < kRows; ++half) {
      const int query = queries.begin + warpgroup::row_of_lane() + half * 8;
      // Keys up to `last` are visible where they belong to the query's document.
      const int start = query < queries.end ? starts[query] : 0;
      const int last = query >= queries.end                 ? -1
                       : problem.causal && query < keys.end ? query
                                                            : keys.end - 1;
      float most = -INFINITY;
#pragma unroll
      for (int i = 0; i < kScores / kRows; ++i) {
        const int element = i / 2 * 4 + half * 2 + i % 2;
        const int key = keys.begin + warpgroup::column_of(element);
        const bool visible = all || (key <= last && starts[key] == start);
        scores[element] = visible ? scores[element] * factor : -INFINITY;
        most = Max()(most, scores[element]);
      }
      most = Max()(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = Max()(most, __shfl_xor_sync(kAllLanes, most, 2));
      most = Max()(most, largest[half]);
      // Nothing visible yet: any finite number keeps NaN away.
      const float offset = most == -INFINITY ? 0 : most;
      const float shrink = exp2f(largest[half] - offset);
      largest[half] = most;
      total[half] *= shrink;
#pragma unroll
      for (int i = 0; i < kScores / kRows; ++i) {
        float& score = scores[i / 2 * 4 + half * 2 + i % 2];
        score = exp2f(score - offset);
        total[half] += score;
      }
#pragma unroll
      for (int i = 0; i < count / kRows; ++i) sums[i / 2 * 4 + half * 2 + i % 2] *= shrink;
    }
  }
  __device__ float sum(int half) const {
    const float pair = total[half] + __shfl_xor_sync(kAllLanes, total[half], 1);
    return pair + __shfl_xor_sync(kAllLanes, pair, 2);
  }
};

template <int kDims>
struct Memory {
  Panels<kBlock, kDims> q, k, v;
};

template <int n, int kDims>
__global__ void __launch_bounds__(kThreads, kDims == 64 ? 3 : 2) attend(Problem problem) {
  __shared__ Memory<kDims> memory;
  const auto [sequence, head, place] = unit_of(problem, problem.heads);
  // The last queries, which have the most keys, go first.
  const Range queries = problem.query_range(problem.num_query_blocks() - 1 - place);
  const Range own = own_positions(problem, sequence, queries);
  if (own.begin >= own.end) return;
  const int32_t* starts = problem.starts_of(sequence);
  const int64_t kv_col = int64_t{head / problem.group_size()} * problem.head_dim;
  const int64_t first_row = problem.query_row(sequence, queries.begin);
  const int64_t first_col = int64_t{head} * problem.head_dim;

  Range blocks = key_blocks_of(problem, starts, own);
  for (int block = blocks.begin; block < blocks.end; ++block) {
    if (past_documents(starts, problem.key_range(block).begin, own.end - 1)) blocks.end = block;
  }
  const auto load = [&](const Rows& rows, int block, Panels<kBlock, kDims>& to) {
    const Range keys = problem.key_range(block);
    load_panels<n>({rows, problem.key_row(sequence, keys.begin), kv_col, keys.end - keys.begin},
                   problem.head_dim, to);
  };

  load_panels<n>({problem.q, first_row, first_col, queries.end - queries.begin}, problem.head_dim,
                 memory.q);
  load(problem.k, blocks.begin, memory.k);
  float sums[kDims / 2];
#pragma unroll
  for (float& sum : sums) sum = 0;
  RunningSoftmax softmax;
  for (int block = blocks.begin; block < blocks.end; ++block) {
    wait_for_panels();  // k is there, and v was used
    load(problem.v, block, memory.v);
    float scores[kScores];
    warpgroup::fence();
#pragma unroll
    for (int dim = 0; dim < kDims; dim += warpgroup::kDepth) {
      warpgroup::multiply<true>(scores, warpgroup::left_rows(memory.q, 0, dim),
                                warpgroup::rows_transposed(memory.k, dim), dim > 0);
    }
    warpgroup::commit();
    warpgroup::wait();
    softmax.advance(problem, starts, queries, problem.key_range(block), scores, sums);
    uint32_t weights[kScores / 2];
#pragma unroll
    for (int i = 0; i < kScores / 2; ++i) weights[i] = pair_of(scores[2 * i], scores[2 * i + 1]);
    wait_for_panels();  // v is there, and k was used
    if (block + 1 < blocks.end) load(problem.k, block + 1, memory.k);
    warpgroup::fence();
#pragma unroll
    for (int key = 0; key < kBlock; key += warpgroup::kDepth) {
      warpgroup::multiply<false>(sums, weights + key / 4,
                                 warpgroup::rows_as_they_are(memory.v, key), true);
    }
    warpgroup::commit();
    warpgroup::wait();
  }

#pragma unroll
  for (int half = 0; half < kRows; ++half) {
    const int row = warpgroup::row_of_lane() + half * 8, query = queries.begin + row;
    const float total = softmax.sum(half);
    if (query >= queries.end || problem.is_elsewhere(sequence, query)) continue;
    if (threadIdx.x % 4 == 0) {
      *row_at<float>(problem.lse, first_row + row, head) =
          (softmax.largest[half] + log2f(total)) * kLn2;
    }
    const float factor = 1 / total;
#pragma unroll
    for (int i = half * 2; i < kDims / 2; i += 4) {
      const int col = warpgroup::column_of(i);
      uint16_t* const to = row_at<uint16_t>(problem.o, first_row + row, first_col + col);
      const uint32_t pair = pair_of(sums[i] * factor, sums[i + 1] * factor);
      if constexpr (n > 1) {
        if (col < problem.head_dim) *reinterpret_cast<uint32_t*>(to) = pair;
      } else {
        if (col < problem.head_dim) to[0] = static_cast<uint16_t>(pair);
        if (col + 1 < problem.head_dim) to[1] = static_cast<uint16_t>(pair >> 16);
      }
    }
  }
}

template <int n, int kDims>
void launch_forward(const KernelCall& call, const Problem& problem) {
  static_assert(sizeof(Memory<kDims>) <= 48 << 10);
  const int64_t heads = int64_t{problem.num_sequences} * problem.heads;
  launch(call, blocks_for(heads * problem.num_query_blocks(), 1), kThreads, attend<n, kDims>,
         problem);
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
