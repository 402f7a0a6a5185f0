#include <algorithm>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/matmul/plain_matmul_cuda.h"

namespace skein {

using namespace cuda;  // NOLINT(google-build-using-namespace)

namespace {

struct E4M3 {
  uint8_t code;
};
struct E5M2 {
  uint8_t code;
};
__device__ float to_float(E4M3 x) {
  constexpr Fp8Format format = kE4M3;
  return from_fp8(x.code, format);
}
__device__ float to_float(E5M2 x) {
  constexpr Fp8Format format = kE5M2;
  return from_fp8(x.code, format);
}
using cuda::to_float;

// Calls `function` with values of the types of both operands' elements.
template <typename Function>
void with_types(const CudaMatmul& matmul, const Function& function) {
  const auto& of_a = matmul.a.fp8;
  const auto& of_b = matmul.b.fp8;
  if (!of_a) {
    with_type(matmul.a.dtype,
              [&](auto a) { with_type(matmul.b.dtype, [&](auto b) { function(a, b); }); });
    return;
  }
  const bool a_is_e4m3 = of_a->mantissa_bits == kE4M3.mantissa_bits;
  const bool b_is_e4m3 = of_b->mantissa_bits == kE4M3.mantissa_bits;
  if (a_is_e4m3 && b_is_e4m3) function(E4M3(), E4M3());
  if (a_is_e4m3 && !b_is_e4m3) function(E4M3(), E5M2());
  if (!a_is_e4m3 && b_is_e4m3) function(E5M2(), E4M3());
}

constexpr int kTile = 16;
template <typename A, typename B, typename C>
__global__ void __launch_bounds__(kTile* kTile)
    multiply_plainly(const A* a, int64_t a_row, int64_t a_depth, const B* b, int64_t b_depth,
                     int64_t b_col, C* c, int64_t c_row, const C* bias, bool accumulate,
                     const float* a_scale, const float* b_scale, int64_t rows, int64_t cols,
                     int64_t depth) {
  wait_for_previous_kernel();
  __shared__ float a_tile[kTile][kTile + 1], b_tile[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t col = int64_t{blockIdx.x} * kTile + x;
  for (int64_t first = int64_t{blockIdx.y} * kTile; first < rows;
       first += int64_t{gridDim.y} * kTile) {
    const int64_t row = first + y;
    float sum = 0;
    for (int64_t k = 0; k < depth; k += kTile) {
      a_tile[y][x] = row < rows && k + x < depth ? to_float(a[row * a_row + (k + x) * a_depth]) : 0;
      b_tile[y][x] = col < cols && k + y < depth ? to_float(b[(k + y) * b_depth + col * b_col]) : 0;
      __syncthreads();
      for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
      __syncthreads();
    }
    if (row < rows && col < cols) {
      C& element = c[row * c_row + col];
      if (a_scale != nullptr) sum *= *a_scale;
      if (b_scale != nullptr) sum *= *b_scale;
      if (bias != nullptr) sum += to_float(bias[col]);
      if (accumulate) sum += to_float(element);
      element = from_float<C>(sum);
    }
  }
}

}  // namespace

void run_plain_matmul(const CudaMatmul& matmul, const KernelCall& call) {
  const CudaMatmulOperand &a = matmul.a, &b = matmul.b;
  const dim3 grid(blocks_for(matmul.cols, kTile), std::min(65535u, blocks_for(matmul.rows, kTile)));
  with_types(matmul, [&](auto a_type, auto b_type) {
    with_type(matmul.c.dtype, [&](auto c_type) {
      using A = decltype(a_type);
      using B = decltype(b_type);
      using C = decltype(c_type);
      launch(call, grid, dim3(kTile, kTile), multiply_plainly<A, B, C>,
             static_cast<const A*>(a.data), a.depth_is_row ? 1 : a.row_stride,
             a.depth_is_row ? a.row_stride : 1, static_cast<const B*>(b.data),
             b.depth_is_row ? b.row_stride : 1, b.depth_is_row ? 1 : b.row_stride,
             static_cast<C*>(matmul.c.out), matmul.c.row_stride,
             static_cast<const C*>(matmul.c.bias), matmul.c.accumulate && !matmul.c.from_zero,
             a.inverse_scale, b.inverse_scale, matmul.rows, matmul.cols, matmul.depth);
    });
  });
}

}  // namespace skein
