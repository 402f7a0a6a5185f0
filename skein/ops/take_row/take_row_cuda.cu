#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 128;

// One thread an element: a row is too short to be worth more.
template <typename T>
__global__ void copy_row(const T* x, int64_t x_stride, int64_t rows, const int32_t* index, T* y,
                         int64_t cols) {
  wait_for_previous_kernel();
  const int64_t col = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  const int64_t last = rows - 1, asked = *index;
  const int64_t row = asked < 0 ? 0 : asked < last ? asked : last;
  y[col] = x[row * x_stride + col];
}

void run(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  with_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    launch(call, blocks_for(x.cols(), kThreads), kThreads, copy_row<T>, x.as<const T>(),
           x.row_stride, x.rows(), call.inputs[1].as<const int32_t>(), y.as<T>(), x.cols());
  });
}

}  // namespace

void add_take_row_cuda_kernels(KernelTable& table) { table["take_row"] = {.run = run}; }

}  // namespace skein
