#include "skein/base/numbers/exact_sum.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 192;
constexpr int kTermsAtOnce = 8;  // a thread's loads in flight

// Runs as one block. Every thread has bins of its own, which are then added, exactly as well.
__global__ void __launch_bounds__(kThreads)
    add_terms(const float* terms, int64_t count, double* bins) {
  wait_for_previous_kernel();
  __shared__ double of_threads[kThreads][exact_sum::kBins + 1];  // odd: each in banks of its own
  double* mine = of_threads[threadIdx.x];
  for (int bin = 0; bin < exact_sum::kBins; ++bin) mine[bin] = 0;
  for (int64_t begin = threadIdx.x; begin < count; begin += kThreads * kTermsAtOnce) {
    float some[kTermsAtOnce];
    for (int i = 0; i < kTermsAtOnce; ++i) {
      const int64_t at = begin + i * kThreads;
      some[i] = at < count ? terms[at] : 0.0f;
    }
    for (int i = 0; i < kTermsAtOnce; ++i) exact_sum::add(mine, some[i]);
  }
  __syncthreads();
  const int bin = threadIdx.x;
  if (bin >= exact_sum::kBins) return;
  double sum = bins[bin];
  for (int thread = 0; thread < kThreads; ++thread) sum += of_threads[thread][bin];
  bins[bin] = sum;
}

void run(const KernelCall& call) {
  const View& terms = call.inputs[1];
  launch(call, 1, kThreads, add_terms, terms.as<const float>(), terms.shape.num_elements(),
         call.outputs[0].as<double>());
}

}  // namespace

void add_sum_cuda_kernels(KernelTable& table) { table["add_to_sum"] = {.run = run}; }

}  // namespace skein
