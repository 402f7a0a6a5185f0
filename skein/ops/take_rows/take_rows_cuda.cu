#include <algorithm>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 128;

// One thread an element, as few rows are taken; blockIdx.y steps over them.
template <typename T>
__global__ void copy_rows(RowsOf<const T> x, int64_t x_rows, const int32_t* index, RowsOf<T> y,
                          int64_t rows, int64_t cols) {
  wait_for_previous_kernel();
  const int64_t col = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const int64_t last = x_rows - 1, asked = index[row];
    const int64_t from = asked < 0 ? 0 : asked < last ? asked : last;
    y.at(row)[col] = x.at(from)[col];
  }
}

void run(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  const dim3 grid(blocks_for(y.cols(), kThreads), std::min(blocks_for(y.rows(), 1), 65535u));
  with_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    launch(call, grid, kThreads, copy_rows<T>, rows_of<const T>(x), x.rows(),
           call.inputs[1].as<const int32_t>(), rows_of<T>(y), y.rows(), y.cols());
  });
}

}  // namespace

void add_take_rows_cuda_kernels(KernelTable& table) { table["take_rows"] = {.run = run}; }

}  // namespace skein
