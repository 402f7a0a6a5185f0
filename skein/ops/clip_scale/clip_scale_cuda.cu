#include "skein/base/numbers/exact_sum.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

// One thread adds 24 numbers in f64, in the order of exact_sum::total().
__global__ void find_scale(const double* norm_sum, const int32_t* num_tokens, double max_norm,
                           float* scale, float* norm_out) {
  wait_for_previous_kernel();
  double sum = 0;
  for (int bin = 0; bin < exact_sum::kBins; ++bin) sum += norm_sum[bin];
  const double tokens = *num_tokens > 1 ? *num_tokens : 1;
  const double norm = std::isfinite(sum) ? sqrt(sum) / tokens : NAN;
  const double clip = max_norm > 0 ? max_norm / (norm + 1e-6) : 1.0;
  *scale = static_cast<float>((clip < 1 ? clip : 1.0) / tokens);
  *norm_out = static_cast<float>(norm);
}

void run(const KernelCall& call) {
  launch(call, 1, 1, find_scale, call.inputs[0].as<const double>(),
         call.inputs[1].as<const int32_t>(), call.attrs.real("max_norm"),
         call.outputs[0].as<float>(), call.outputs[1].as<float>());
}

}  // namespace

void add_clip_scale_cuda_kernels(KernelTable& table) { table["clip_scale"] = {.run = run}; }

}  // namespace skein
