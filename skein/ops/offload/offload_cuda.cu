#include "skein/ops/cuda/launch_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

// By a copy engine: it takes no multiprocessor, and finds out itself which side is the host's.
void run(const KernelCall& call) {
  const View &from = call.inputs[0], &to = call.outputs[0];
  const auto bytes = [&](int64_t elements) {
    return static_cast<size_t>(elements * size_of(to.dtype));
  };
  if (to.rows() == 0 || to.cols() == 0) return;
  if (from.is_contiguous() && to.is_contiguous()) {
    check(cudaMemcpyAsync(to.data, from.data, bytes(to.rows() * to.cols()), cudaMemcpyDefault,
                          stream_of(call)),
          "cudaMemcpyAsync");
  } else {
    check(cudaMemcpy2DAsync(to.data, bytes(to.row_stride), from.data, bytes(from.row_stride),
                            bytes(to.cols()), static_cast<size_t>(to.rows()), cudaMemcpyDefault,
                            stream_of(call)),
          "cudaMemcpy2DAsync");
  }
}

}  // namespace

void add_offload_cuda_kernels(KernelTable& table) {
  table["stash"] = {.run = run};
  table["fetch"] = {.run = run};
}

}  // namespace skein
