#include <algorithm>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/largest_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/gelu/gelu.h"
#include "skein/ops/gelu/gelu_terms_cuda.h"
#include "skein/ops/largest.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;
// How many rows a thread reads before it computes, as of swiglu.
constexpr int kRows = 2;

// One thread a pack of n columns of kRows rows; blockIdx.y steps over the rows. The last row may be
// done twice. With `finds` the largest magnitude of what is stored goes to `found`.
template <typename T, int n, bool approximate, bool finds>
__global__ void __launch_bounds__(kThreads, 5)
    forward(RowsOf<const T> x, RowsOf<T> y, int64_t rows, int64_t cols,
            [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  const int64_t col = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n;
  if (!finds && col >= cols) return;
  [[maybe_unused]] float largest = 0;
  for (int64_t first = int64_t{blockIdx.y} * kRows; first < rows && col < cols;
       first += gridDim.y * kRows) {
    Pack<T, n> packs[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      packs[i] = load_pack<n>(x.at(std::min(first + i, rows - 1)) + col);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      float values[n];
      to_floats(values, packs[i]);
      for (float& value : values) value *= gelu_of<T, approximate>(value).share;
      const Pack<T, n> rounded = from_floats<T>(values);
      if constexpr (finds) largest = larger(largest, rounded);
      store_pack(y.at(std::min(first + i, rows - 1)) + col, rounded);
    }
  }
  if constexpr (finds) keep_largest(largest, found);
}

// Threads and rows are as in `forward`.
template <typename T, int n, bool approximate, bool finds>
__global__ void __launch_bounds__(kThreads, 4)
    backward(RowsOf<const T> dy, RowsOf<const T> x, RowsOf<T> dx, int64_t rows, int64_t cols,
             [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  const int64_t col = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n;
  if (!finds && col >= cols) return;
  [[maybe_unused]] float largest = 0;
  for (int64_t first = int64_t{blockIdx.y} * kRows; first < rows && col < cols;
       first += gridDim.y * kRows) {
    Pack<T, n> dys[kRows], xs[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = std::min(first + i, rows - 1);
      dys[i] = load_pack<n>(dy.at(row) + col);
      xs[i] = load_pack<n>(x.at(row) + col);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      float grads[n], values[n];
      to_floats(grads, dys[i]);
      to_floats(values, xs[i]);
      for (int j = 0; j < n; ++j) grads[j] *= gelu_of<T, approximate>(values[j]).slope;
      const Pack<T, n> rounded = from_floats<T>(grads);
      if constexpr (finds) largest = larger(largest, rounded);
      store_pack(dx.at(std::min(first + i, rows - 1)) + col, rounded);
    }
  }
  if constexpr (finds) keep_largest(largest, found);
}

dim3 grid_for(const View& y, unsigned threads, int n) {
  return dim3(blocks_for(y.cols(), int64_t{threads} * n),
              std::min(blocks_for(y.rows(), kRows), 65535u));
}

template <typename T, int n, bool approximate>
void launch_forward(const KernelCall& call) {
  const View& y = call.outputs[0];
  const unsigned threads = threads_for(blocks_for(y.cols(), n), kThreads);
  const bool finds = finds_largest(call.attrs);
  unsigned* const found = finds ? start_largest(call, call.outputs.back()) : nullptr;
  launch(call, grid_for(y, threads, n), threads,
         finds ? forward<T, n, approximate, true> : forward<T, n, approximate, false>,
         rows_of<const T>(call.inputs[0]), rows_of<T>(y), y.rows(), y.cols(), found);
}

template <typename T, int n, bool approximate>
void launch_backward(const KernelCall& call) {
  const View& dx = call.outputs[0];
  const unsigned threads = threads_for(blocks_for(dx.cols(), n), kThreads);
  const bool finds = finds_largest(call.attrs);
  unsigned* const found = finds ? start_largest(call, call.outputs.back()) : nullptr;
  launch(call, grid_for(dx, threads, n), threads,
         finds ? backward<T, n, approximate, true> : backward<T, n, approximate, false>,
         rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]), rows_of<T>(dx),
         dx.rows(), dx.cols(), found);
}

// function(T{}, std::bool_constant<approximate>{})
template <typename Function>
void with_form(const KernelCall& call, const Function& function) {
  with_type(call.outputs[0].dtype, [&](auto type) {
    is_approximate_gelu(call.attrs) ? function(type, std::true_type())
                                    : function(type, std::false_type());
  });
}

void run(const KernelCall& call) {
  with_form(call, [&](auto type, auto approximate) {
    using T = decltype(type);
    if (are_packable(kPackOf<T>, call.inputs[0], call.outputs[0])) {
      launch_forward<T, kPackOf<T>, approximate>(call);
    } else {
      launch_forward<T, 1, approximate>(call);
    }
  });
}

void run_backward(const KernelCall& call) {
  with_form(call, [&](auto type, auto approximate) {
    using T = decltype(type);
    if (are_packable(kPackOf<T>, call.inputs[0], call.inputs[1], call.outputs[0])) {
      launch_backward<T, kPackOf<T>, approximate>(call);
    } else {
      launch_backward<T, 1, approximate>(call);
    }
  });
}

}  // namespace

void add_gelu_cuda_kernels(KernelTable& table) {
  table["gelu"] = {.run = run};
  table["gelu_backward"] = {.run = run_backward};
}

}  // namespace skein
