#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;

// One thread a column; blockIdx.y steps over the rows. y is the memory of x.
template <typename T, typename B>
__global__ void add_to_rows(T* y, int64_t y_stride, const B* b, int64_t rows, int64_t cols) {
  wait_for_previous_kernel();
  const int64_t col = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  const float bias = to_float(b[col]);
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    T& value = y[row * y_stride + col];
    value = from_float<T>(to_float(value) + bias);
  }
}

template <typename T, typename B>
void run_as(const KernelCall& call) {
  const View& y = call.outputs[0];
  const int64_t rows = y.rows();
  const dim3 grid(blocks_for(y.cols(), kThreads),
                  static_cast<unsigned>(rows < 65535 ? rows : 65535));
  launch(call, grid, kThreads, add_to_rows<T, B>, y.as<T>(), y.row_stride,
         call.inputs[1].as<const B>(), rows, y.cols());
}

void run(const KernelCall& call) {
  with_type(call.outputs[0].dtype, [&](auto row) {
    with_type(call.inputs[1].dtype, [&](auto b) { run_as<decltype(row), decltype(b)>(call); });
  });
}

}  // namespace

void add_add_bias_cuda_kernels(KernelTable& table) { table["add_bias"] = {.run = run}; }

}  // namespace skein
