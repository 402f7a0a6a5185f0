#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;

// One thread a pack of n columns; blockIdx.y steps over the rows.
template <typename T, int n>
__global__ void add_rows(const T* a, int64_t a_stride, const T* b, int64_t b_stride, T* y,
                         int64_t y_stride, int64_t rows, int64_t cols) {
  wait_for_previous_kernel();
  const int64_t col = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n;
  if (col >= cols) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const Pack<T, n> left = load_pack<n>(a + row * a_stride + col);
    const Pack<T, n> right = load_pack<n>(b + row * b_stride + col);
    Pack<T, n> sum;
    for (int i = 0; i < n; ++i) {
      if constexpr (sizeof(T) == 8) {
        sum.at[i] = left.at[i] + right.at[i];
      } else {
        sum.at[i] = from_float<T>(to_float(left.at[i]) + to_float(right.at[i]));
      }
    }
    store_pack(y + row * y_stride + col, sum);
  }
}

template <typename T, int n>
void launch_add(const KernelCall& call) {
  const View &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
  int64_t rows = y.rows(), cols = y.cols();
  if (a.is_contiguous() && b.is_contiguous() && y.is_contiguous()) {
    cols *= rows;  // one long row
    rows = 1;
  }
  const dim3 grid(blocks_for(cols, int64_t{kThreads} * n),
                  static_cast<unsigned>(rows < 65535 ? rows : 65535));
  launch(call, grid, kThreads, add_rows<T, n>, a.as<const T>(), a.row_stride, b.as<const T>(),
         b.row_stride, y.as<T>(), y.row_stride, rows, cols);
}

template <typename T>
void run_as(const KernelCall& call) {
  constexpr int kPack = kPackOf<T>;
  if (are_packable(kPack, call.inputs[0], call.inputs[1], call.outputs[0])) {
    launch_add<T, kPack>(call);
  } else {
    launch_add<T, 1>(call);
  }
}

void run(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::kF64) return run_as<double>(call);
  with_type(call.outputs[0].dtype, [&](auto type) { run_as<decltype(type)>(call); });
}

}  // namespace

void add_add_cuda_kernels(KernelTable& table) { table["add"] = {.run = run}; }

}  // namespace skein
