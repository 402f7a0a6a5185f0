#include <climits>
#include <cmath>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;

struct Smallest {
  __device__ int operator()(int a, int b) const { return a < b ? a : b; }
};

// One block a row.
__global__ void __launch_bounds__(kThreads)
    score_rows(const float* logits, int64_t row_stride, int cols, const int32_t* labels,
               float* logprob, int32_t* best, float* best_logprob) {
  wait_for_previous_kernel();
  const int64_t row = blockIdx.x;
  const float* x = logits + row * row_stride;
  const int first = static_cast<int>(threadIdx.x);
  float most = -INFINITY;
  for (int i = first; i < cols; i += kThreads) most = fmaxf(most, x[i]);
  most = block_max(most);
  float sum = 0;
  int at = INT_MAX;
  for (int i = cols - 1 - first; i >= 0; i -= kThreads) {
    sum += expf(x[i] - most);
    if (x[i] == most) at = i;
  }
  __syncthreads();
  sum = block_sum(sum);
  __syncthreads();
  at = block_reduce(at, Smallest(), INT_MAX);
  if (first != 0) return;
  const int label = labels[row];
  const float of_best = -logf(sum);
  best[row] = at == INT_MAX ? 0 : at;
  best_logprob[row] = of_best;
  logprob[row] = label >= 0 && label < cols ? x[label] - most + of_best : 0.0f;
}

void run(const KernelCall& call) {
  const View& logits = call.inputs[0];
  if (logits.rows() == 0) return;
  launch(call, dim3(static_cast<unsigned>(logits.rows())), kThreads, score_rows,
         logits.as<const float>(), logits.row_stride, static_cast<int>(logits.cols()),
         call.inputs[1].as<const int32_t>(), call.outputs[0].as<float>(),
         call.outputs[1].as<int32_t>(), call.outputs[2].as<float>());
}

}  // namespace

void add_token_scores_cuda_kernels(KernelTable& table) { table["token_scores"] = {.run = run}; }

}  // namespace skein
