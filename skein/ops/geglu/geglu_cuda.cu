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
    forward(RowsOf<const T> gate, RowsOf<const T> up, RowsOf<T> y, int64_t rows, int64_t cols,
            [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  const int64_t col = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n;
  if (!finds && col >= cols) return;
  [[maybe_unused]] float largest = 0;
  for (int64_t first = int64_t{blockIdx.y} * kRows; first < rows && col < cols;
       first += gridDim.y * kRows) {
    Pack<T, n> gates[kRows], ups[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = std::min(first + i, rows - 1);
      gates[i] = load_pack<n>(gate.at(row) + col);
      ups[i] = load_pack<n>(up.at(row) + col);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      float g[n], u[n], result[n];
      to_floats(g, gates[i]);
      to_floats(u, ups[i]);
      for (int j = 0; j < n; ++j) {
        result[j] = g[j] * gelu_of<T, approximate>(g[j]).share * u[j];
      }
      const Pack<T, n> rounded = from_floats<T>(result);
      if constexpr (finds) largest = larger(largest, rounded);
      store_pack(y.at(std::min(first + i, rows - 1)) + col, rounded);
    }
  }
  if constexpr (finds) keep_largest(largest, found);
}

// Threads and rows are as in `forward`.
template <typename T, int n, bool approximate, bool finds>
__global__ void __launch_bounds__(kThreads, 4)
    backward(RowsOf<const T> dy, RowsOf<const T> gate, RowsOf<const T> up, RowsOf<T> dgate,
             RowsOf<T> dup, int64_t rows, int64_t cols, [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  const int64_t col = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n;
  if (!finds && col >= cols) return;
  [[maybe_unused]] float largest = 0;
  for (int64_t first = int64_t{blockIdx.y} * kRows; first < rows && col < cols;
       first += gridDim.y * kRows) {
    Pack<T, n> dys[kRows], gates[kRows], ups[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = std::min(first + i, rows - 1);
      dys[i] = load_pack<n>(dy.at(row) + col);
      gates[i] = load_pack<n>(gate.at(row) + col);
      ups[i] = load_pack<n>(up.at(row) + col);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      float d[n], g[n], u[n], of_gate[n], of_up[n];
      to_floats(d, dys[i]);
      to_floats(g, gates[i]);
      to_floats(u, ups[i]);
      for (int j = 0; j < n; ++j) {
        const GeluTerms terms = gelu_of<T, approximate>(g[j]);
        of_up[j] = d[j] * (g[j] * terms.share);
        of_gate[j] = d[j] * u[j] * terms.slope;
      }
      const int64_t row = std::min(first + i, rows - 1);
      const Pack<T, n> dgates = from_floats<T>(of_gate), dups = from_floats<T>(of_up);
      if constexpr (finds) largest = larger(larger(largest, dgates), dups);
      store_pack(dgate.at(row) + col, dgates);
      store_pack(dup.at(row) + col, dups);
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
         rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]), rows_of<T>(y),
         y.rows(), y.cols(), found);
}

template <typename T, int n, bool approximate>
void launch_backward(const KernelCall& call) {
  const View& dgate = call.outputs[0];
  const unsigned threads = threads_for(blocks_for(dgate.cols(), n), kThreads);
  const bool finds = finds_largest(call.attrs);
  unsigned* const found = finds ? start_largest(call, call.outputs.back()) : nullptr;
  launch(call, grid_for(dgate, threads, n), threads,
         finds ? backward<T, n, approximate, true> : backward<T, n, approximate, false>,
         rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]),
         rows_of<const T>(call.inputs[2]), rows_of<T>(dgate), rows_of<T>(call.outputs[1]),
         dgate.rows(), dgate.cols(), found);
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
    if (are_packable(kPackOf<T>, call.inputs[0], call.inputs[1], call.outputs[0])) {
      launch_forward<T, kPackOf<T>, approximate>(call);
    } else {
      launch_forward<T, 1, approximate>(call);
    }
  });
}

void run_backward(const KernelCall& call) {
  with_form(call, [&](auto type, auto approximate) {
    using T = decltype(type);
    if (are_packable(kPackOf<T>, call.inputs[0], call.inputs[1], call.inputs[2], call.outputs[0],
                     call.outputs[1])) {
      launch_backward<T, kPackOf<T>, approximate>(call);
    } else {
      launch_backward<T, 1, approximate>(call);
    }
  });
}

}  // namespace

void add_geglu_cuda_kernels(KernelTable& table) {
  table["geglu"] = {.run = run};
  table["geglu_backward"] = {.run = run_backward};
}

}  // namespace skein
