#include <algorithm>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/largest_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/largest.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;
constexpr int kHeads = 4;  // that a thread reads before it turns them

struct Problem {
  const int32_t* positions;
  RowsOf<const float> table;
  int64_t num_positions;
  int64_t tokens;
  int q_heads, heads;  // heads: of q and of k
  int half;            // of a head's dims
  float sign;          // of the sines
};

// keep_largest of a block of any shape, of which warps may not be whole.
__device__ void keep_largest_of_any_block(float of_thread, unsigned* found) {
  __shared__ unsigned of_block;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const bool are_whole = blockDim.x * blockDim.y * blockDim.z % 32 == 0;
  if (thread == 0) of_block = 0;
  __syncthreads();
  if (are_whole) of_thread = warp_reduce(of_thread, Max());
  if (!are_whole || thread % 32 == 0) atomicMax(&of_block, __float_as_uint(of_thread));
  __syncthreads();
  if (thread == 0) atomicMax(found, of_block);
}

// A block is (packs of half a head) x (heads) x (tokens); a thread turns kHeads heads, as far apart
// as the block has threads for heads. Its heads are being loaded while the block waits for
// positions and then for cosines and sines, which its threads share.
template <typename T, int n, bool finds>
__global__ void __launch_bounds__(kThreads, 3)
    turn(const Problem problem, RowsOf<T> q, RowsOf<T> k, [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  __shared__ Pack<float, n> cosines[kThreads], sines[kThreads];
  const int half = problem.half;
  const int col = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * n;
  const int64_t own_token = int64_t{blockIdx.x} * blockDim.z + threadIdx.z;
  const bool is_inside = own_token < problem.tokens && col < half;
  // A thread outside reads what others read too, which takes no branch.
  const int64_t token = std::min(own_token, problem.tokens - 1);
  const int i = is_inside ? col : 0;

  const int slot = threadIdx.z * blockDim.x + threadIdx.x;
  const int step = blockDim.y;  // from one head of a thread to the next
  T* const of_q = q.at(token) + i;
  T* const of_k = k.at(token) - int64_t{problem.q_heads} * 2 * half + i;
  [[maybe_unused]] float largest = 0;
  for (int begin = 0; begin < problem.heads; begin += kHeads * step) {
    const int first = begin + threadIdx.y;
    T* heads[kHeads];
    Pack<T, n> lower[kHeads], upper[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const int head = std::min(first + h * step, problem.heads - 1);
      heads[h] = (head < problem.q_heads ? of_q : of_k) + head * 2 * half;
      lower[h] = load_pack<n>(heads[h]);
      upper[h] = load_pack<n>(heads[h] + half);
    }
    if (first == 0) {
      const int64_t position = problem.positions[token];
      const float* const of_position =
          problem.table.at(std::clamp<int64_t>(position, 0, problem.num_positions - 1)) + i;
      cosines[slot] = load_pack<n>(of_position);
      sines[slot] = load_pack<n>(of_position + half);
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (!is_inside || first + h * step >= problem.heads) break;
      float x1[n], x2[n], y1[n], y2[n];
      to_floats(x1, lower[h]);
      to_floats(x2, upper[h]);
      for (int j = 0; j < n; ++j) {
        const float c = cosines[slot].at[j], s = sines[slot].at[j] * problem.sign;
        y1[j] = __fsub_rn(__fmul_rn(x1[j], c), __fmul_rn(x2[j], s));
        y2[j] = __fadd_rn(__fmul_rn(x2[j], c), __fmul_rn(x1[j], s));
      }
      const Pack<T, n> first_half = from_floats<T>(y1), second_half = from_floats<T>(y2);
      if constexpr (finds) largest = larger(larger(largest, first_half), second_half);
      store_pack_global(heads[h], first_half);
      store_pack_global(heads[h] + half, second_half);
    }
  }
  if constexpr (finds) keep_largest_of_any_block(largest, found);
}

template <typename T, int n>
void launch_turn(const KernelCall& call, const Problem& problem) {
  const unsigned packs = std::min<unsigned>(problem.half / n, kThreads);
  const unsigned heads =
      std::clamp<unsigned>((problem.heads + kHeads - 1) / kHeads, 1, kThreads / packs);
  const unsigned tokens = std::clamp<unsigned>(kThreads / (packs * heads), 1, 64);
  const bool finds = finds_largest(call.attrs);
  unsigned* const found = finds ? start_largest(call, call.outputs.back()) : nullptr;
  launch(call, dim3(blocks_for(problem.tokens, tokens), blocks_for(problem.half / n, packs)),
         dim3(packs, heads, tokens), finds ? turn<T, n, true> : turn<T, n, false>, problem,
         rows_of<T>(call.outputs[0]), rows_of<T>(call.outputs[1]), found);
}

void run(const KernelCall& call) {
  const View &q = call.outputs[0], &k = call.outputs[1];  // the memory of inputs 0 and 1
  const View& table = call.inputs[3];
  const int64_t head_dim = call.attrs.integer("head_dim");
  const Problem problem = {.positions = call.inputs[2].as<const int32_t>(),
                           .table = rows_of<const float>(table),
                           .num_positions = table.rows(),
                           .tokens = q.rows(),
                           .q_heads = static_cast<int>(q.cols() / head_dim),
                           .heads = static_cast<int>((q.cols() + k.cols()) / head_dim),
                           .half = static_cast<int>(head_dim / 2),
                           .sign = call.attrs.flag("inverse") ? -1.0f : 1.0f};
  with_type(q.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int n = kPackOf<T>;
    if (problem.half % n == 0 && are_packable(n, q, k, table)) {
      launch_turn<T, n>(call, problem);
    } else {
      launch_turn<T, 1>(call, problem);
    }
  });
}

}  // namespace

void add_rope_cuda_kernels(KernelTable& table) { table["rope"] = {.run = run}; }

}  // namespace skein
