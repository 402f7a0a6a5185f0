#include <algorithm>

#include "skein/base/error.h"
#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/attention_cudnn_cuda.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein {
namespace attention_cuda {
namespace {

std::shared_ptr<const void> prepare(const KernelCall& call) {
  const int first = call.inputs.size() > 4 ? 1 : 0;  // backward begins with the gradient
  const int64_t parts = call.attrs.has("parts") ? call.attrs.integer("parts") : 1;
  const int64_t q_rows = call.inputs[first].rows(), k_rows = call.inputs[first + 1].rows();
  if (q_rows * parts != k_rows) {
    fail(ErrorCode::kInternal,
         "[attention] {} query rows are not one part of {} of {} key rows: was the node localized?",
         q_rows, parts, k_rows);
  }
  const int64_t head_dim = call.attrs.integer("head_dim");
  if (head_dim > kMaxHeadDim) {
    fail(ErrorCode::kUnsupported, "[attention] head_dim = {}: the CUDA kernels go up to {}",
         head_dim, kMaxHeadDim);
  }
  return nullptr;
}

constexpr int kDeltaThreads = 256;

// A thread block for each query row, a warp for each of its heads. Rows that are computed elsewhere
// get zeros: they lie in blocks with others, where what is multiplied by zero must be finite.
template <typename T, int n>
__global__ void __launch_bounds__(kDeltaThreads) sum_delta_rows(Problem problem) {
  cuda::wait_for_previous_kernel();
  const int64_t row = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % warpSize;
  float* const deltas = problem.delta + row * problem.heads;
  if (problem.elsewhere != nullptr && problem.elsewhere[row] != 0) {
    for (int head = thread; head < problem.heads; head += kDeltaThreads) deltas[head] = 0;
    return;
  }
  for (int head = thread / warpSize; head < problem.heads; head += kDeltaThreads / warpSize) {
    const int64_t col = int64_t{head} * problem.head_dim;
    const T* grad = row_at<const T>(problem.grad, row, col);
    const T* o = row_at<const T>(problem.o, row, col);
    float sum = 0;
    for (int dim = lane * n; dim < problem.head_dim; dim += warpSize * n) {
      const auto left = cuda::load_pack<n>(grad + dim), right = cuda::load_pack<n>(o + dim);
      for (int i = 0; i < n; ++i) sum += cuda::to_float(left.at[i]) * cuda::to_float(right.at[i]);
    }
    sum = cuda::warp_reduce(sum, cuda::Sum());
    if (lane == 0) deltas[head] = sum;
  }
}

constexpr int kPackThreads = 256;

// A thread writes a value; blockIdx.y is its sequence.
__global__ void __launch_bounds__(kPackThreads) pack_lse_rows(Problem problem, float* packed) {
  cuda::wait_for_previous_kernel();
  const int64_t count = int64_t{problem.heads} * problem.sequence_length;
  const int64_t i = int64_t{blockIdx.x} * kPackThreads + threadIdx.x;
  if (i >= count) return;
  const int sequence = static_cast<int>(blockIdx.y);
  const auto position = static_cast<int>(i % problem.sequence_length);
  packed[sequence * count + i] = *row_at<const float>(
      problem.lse, problem.query_row(sequence, position), i / problem.sequence_length);
}

bool is_for_tensor_cores(const KernelCall& call, const Problem& problem) {
  return call.outputs[0].dtype == DType::kBF16 && problem.head_dim <= kMaxTensorCoreHeadDim;
}

void run_forward(const KernelCall& call) {
  const auto rest = start_cudnn(call, bind(call, false), false, call.scratch);
  if (!rest.has_value()) return;
  const Problem& problem = *rest;
  if (is_for_warpgroups(call.outputs[0].dtype, problem)) {
    run_warpgroup_forward(call, problem);
  } else if (is_for_tensor_cores(call, problem)) {
    run_tensor_core_forward(call, problem);
  } else {
    run_scalar_forward(call, problem);
  }
}

void run_backward(const KernelCall& call) {
  const Problem whole = bind(call, true);
  const auto rest =
      start_cudnn(call, whole, true, static_cast<char*>(call.scratch) + delta_bytes(whole));
  if (!rest.has_value()) return;
  const Problem& problem = *rest;
  sum_delta(call, problem);
  if (is_for_warpgroups(call.outputs[0].dtype, problem)) {
    run_warpgroup_backward(call, problem);
  } else if (is_for_tensor_cores(call, problem)) {
    run_tensor_core_backward(call, problem);
  } else {
    run_scalar_backward(call, problem);
  }
}

}  // namespace

int compute_capability() {
  return 10 * cuda::device_attribute(cudaDevAttrComputeCapabilityMajor) +
         cuda::device_attribute(cudaDevAttrComputeCapabilityMinor);
}

void pack_lse(const KernelCall& call, const Problem& problem, float* packed) {
  const int64_t count = int64_t{problem.heads} * problem.sequence_length;
  const dim3 grid(cuda::blocks_for(count, kPackThreads),
                  static_cast<unsigned>(problem.num_sequences));
  cuda::launch(call, grid, kPackThreads, pack_lse_rows, problem, packed);
}

void sum_delta(const KernelCall& call, const Problem& problem) {
  const unsigned blocks = cuda::blocks_for(problem.num_query_rows(), 1);
  cuda::with_type(call.outputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kPack = cuda::kPackOf<T>;
    const bool packable = are_heads_packable(kPack, sizeof(T), problem);
    cuda::launch(call, blocks, kDeltaThreads,
                 packable ? sum_delta_rows<T, kPack> : sum_delta_rows<T, 1>, problem);
  });
}

bool are_heads_packable(int n, int bytes, const Problem& problem) {
  bool packable = problem.head_dim % n == 0;
  for (const Rows& rows : {problem.q, problem.k, problem.v, problem.o, problem.grad, problem.dq,
                           problem.dk, problem.dv}) {
    packable = packable && reinterpret_cast<uintptr_t>(rows.data) % (n * bytes) == 0 &&
               rows.stride % n == 0;
  }
  return packable;
}

}  // namespace attention_cuda

void add_attention_cuda_kernels(KernelTable& table) {
  table["attention"] = {.run = attention_cuda::run_forward, .prepare = attention_cuda::prepare};
  table["attention_backward"] = {.run = attention_cuda::run_backward,
                                 .prepare = attention_cuda::prepare};
}

}  // namespace skein
