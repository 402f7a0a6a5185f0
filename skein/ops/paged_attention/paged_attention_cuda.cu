// A block of 64 threads a token and query head: a thread a position of a block of keys, then a
// thread a dim of the values. The order of every sum is the header's.
#include <algorithm>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/shared_memory_cuda.h"
#include "skein/ops/paged_attention/paged_attention_problem.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)
using paged::Problem;

constexpr int kThreads = paged::kBlock;

// What every thread of a block may read of a value of each.
struct Exchange {
  float values[kThreads];
};

__device__ float largest_of_block(float value) {
  __shared__ Exchange of;
  of.values[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float other = of.values[threadIdx.x + half];
      if (other > of.values[threadIdx.x]) of.values[threadIdx.x] = other;
    }
    __syncthreads();
  }
  const float result = of.values[0];
  __syncthreads();
  return result;
}

// exp of simd-inl.h, operation by operation.
__device__ float same_exp(float x) {
  const float bounded = x < -87.33f ? -87.33f : x;
  const float exponent = bounded > 88.37f ? 88.37f : bounded;
  const float magic = 12582912.0f;
  const float shifted = __fmaf_rn(exponent, 1.44269504f, magic);
  const float n = __fadd_rn(shifted, -magic);
  float r = __fmaf_rn(-n, 0.693359375f, bounded);
  r = __fmaf_rn(-n, -2.12194440e-4f, r);
  const float r2 = __fmul_rn(r, r), r4 = __fmul_rn(r2, r2);
  const float p01 = __fadd_rn(1.0f, r), p23 = __fmaf_rn(1.0f / 6, r, 0.5f);
  const float p45 = __fmaf_rn(1.0f / 120, r, 1.0f / 24);
  const float p67 = __fmaf_rn(1.0f / 5040, r, 1.0f / 720);
  const float low = __fmaf_rn(p23, r2, p01), high = __fmaf_rn(p67, r2, p45);
  const float p = __fmaf_rn(high, r4, low);
  const unsigned scale = (__float_as_uint(shifted) << 23) + (127u << 23);
  return __fmul_rn(p, __uint_as_float(scale));
}

// Positions that a token attends to; 0: it is padding. Every thread of the block calls.
__device__ int64_t context_of(const Problem& problem, int64_t token) {
  if (!problem.is_in_table(token)) return 0;
  const int32_t* pages = problem.pages_of(problem.sequence[token]);
  const int64_t last = problem.position[token];
  float wrong = 0;
  for (int64_t i = threadIdx.x; i <= last / problem.page_size; i += kThreads) {
    if (!problem.is_page(pages[i])) wrong = 1;
  }
  return largest_of_block(wrong) > 0 ? 0 : last + 1;
}

// One block a token.
template <typename T>
__global__ void store_tokens(Problem problem) {
  wait_for_previous_kernel();
  const int64_t token = blockIdx.x, context = context_of(problem, token);
  if (context == 0) return;
  const int64_t head_dim = problem.head_dim, page_size = problem.page_size;
  const int64_t place = (context - 1) % page_size;
  const int64_t page = problem.pages_of(problem.sequence[token])[(context - 1) / page_size];
  const T *k = problem.k.row<const T>(token), *v = problem.v.row<const T>(token);
  T *keys = problem.keys.row<T>(page), *values = problem.values.row<T>(page);
  for (int64_t i = threadIdx.x; i < problem.kv_heads * head_dim; i += kThreads) {
    keys[i * page_size + place] = k[i];
    values[(i / head_dim * page_size + place) * head_dim + i % head_dim] = v[i];
  }
}

// Dynamic memory: q[head_dim], then the sums of the output [head_dim].
template <typename T>
__global__ void attend(Problem problem) {
  wait_for_previous_kernel();
  __shared__ Exchange weights;
  __shared__ float sums[paged::kSums];
  const int64_t head_dim = problem.head_dim, page_size = problem.page_size;
  float* q = &dynamic_memory<float>(2 * head_dim);
  float* out = q + head_dim;
  const int64_t token = blockIdx.x, head = blockIdx.y, kv_head = head / problem.group_size();
  const int64_t context = context_of(problem, token);
  T* o = problem.o.row<T>(token) + head * head_dim;
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t dim = thread; dim < head_dim; dim += kThreads) {
    q[dim] = to_float(problem.q.row<const T>(token)[head * head_dim + dim]);
    out[dim] = 0;
    if (context == 0) o[dim] = from_float<T>(0.0f);
  }
  if (context == 0) return;
  if (thread < paged::kSums) sums[thread] = 0;
  const int32_t* pages = problem.pages_of(problem.sequence[token]);
  float largest = -INFINITY;
  __syncthreads();
  for (int64_t begin = 0; begin < context; begin += paged::kBlock) {
    const int count = static_cast<int>(context - begin < kThreads ? context - begin : kThreads);
    float x = -INFINITY;
    if (thread < count) {
      const int64_t position = begin + thread;
      const T* keys = problem.keys.row<const T>(pages[position / page_size]) +
                      kv_head * head_dim * page_size + position % page_size;
      float sum = 0;
      for (int64_t dim = 0; dim < head_dim; ++dim) {
        sum = __fmaf_rn(q[dim], to_float(keys[dim * page_size]), sum);
      }
      x = __fmul_rn(sum, problem.scale);
    }
    const float of_block = largest_of_block(x);
    const float difference = __fadd_rn(largest, -of_block);
    const float smaller = same_exp(difference > 0 ? -difference : difference);
    const float of_old = of_block > largest ? smaller : 1.0f;
    const float of_new = of_block > largest ? 1.0f : smaller;
    largest = of_block > largest ? of_block : largest;
    weights.values[thread] = thread < count ? same_exp(__fadd_rn(x, -of_block)) : 0.0f;
    __syncthreads();
    if (thread < paged::kSums) {
      float sum = 0;
      for (int i = thread; i < kThreads; i += paged::kSums) {
        sum = __fadd_rn(sum, weights.values[i]);
      }
      sums[thread] = __fmaf_rn(sum, of_new, __fmul_rn(sums[thread], of_old));
    }
    for (int64_t dim = thread; dim < head_dim; dim += kThreads) {
      float sum = 0;
      for (int i = 0; i < count; ++i) {
        const int64_t position = begin + i;
        const T* values = problem.values.row<const T>(pages[position / page_size]) +
                          (kv_head * page_size + position % page_size) * head_dim;
        sum = __fmaf_rn(weights.values[i], to_float(values[dim]), sum);
      }
      out[dim] = __fmaf_rn(sum, of_new, __fmul_rn(out[dim], of_old));
    }
    __syncthreads();
  }
  for (int half = paged::kSums / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] = __fadd_rn(sums[thread], sums[thread + half]);
    __syncthreads();
  }
  const float inverse = __fdiv_rn(1.0f, sums[0]);
  for (int64_t dim = thread; dim < head_dim; dim += kThreads) {
    o[dim] = from_float<T>(__fmul_rn(out[dim], inverse));
  }
}

void run(const KernelCall& call) {
  const Problem problem = paged::bind(call);
  const auto tokens = static_cast<unsigned>(problem.tokens);
  const dim3 grid(tokens, static_cast<unsigned>(problem.heads));
  const int memory = static_cast<int>(2 * problem.head_dim * int64_t{sizeof(float)});
  with_type(call.outputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    launch(call, tokens, kThreads, store_tokens<T>, problem);
    launch_with_memory(call, grid, kThreads, memory, attend<T>, problem);
  });
}

}  // namespace

void add_paged_attention_cuda_kernels(KernelTable& table) {
  table["paged_attention"] = {.run = run};
}

}  // namespace skein
