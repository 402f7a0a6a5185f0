#include <algorithm>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/linear/adjacent.h"
#include "skein/ops/linear/linear.h"
#include "skein/ops/linear/linear_cuda_rules.h"
#include "skein/ops/linear/operands_cuda.h"
#include "skein/ops/matmul/matmul_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)
using adjacent::for_each_run;
using adjacent::num_parts;
using namespace linear_cuda;  // NOLINT(google-build-using-namespace)

// ---- y_i = x w_i^T + b_i

void run_forward(const KernelCall& call) {
  const int parts = num_parts(call);
  const View& x = call.inputs[0];
  const CudaLinearOperands operands(call, "linear");
  operands.make();
  for_each_run(
      parts, [&](int i) { return adjacent::joined_in_linear(call, i, operands.are_copies()); },
      [&](int i) { return call.outputs[i].cols(); },
      [&](int begin, int64_t cols) {
        const View& y = call.outputs[begin];
        CudaMatmul matmul{x.rows(), cols, x.cols()};
        matmul.fast_accumulation = has_fast_accumulation(call);
        matmul.a = operands.of(0, false);
        matmul.b = operands.of(1 + begin, false);
        matmul.c = {y.data, y.dtype, y.row_stride};
        if (call.attrs.flag("bias")) {
          const View& bias = call.inputs[1 + parts + begin];
          matmul.c.bias = bias.data;
          matmul.c.bias_dtype = bias.dtype;
        }
        run_cuda_matmul(matmul, operands.rest_of_scratch(), call.stream);
      });
}

// ---- dx = sum_i dy_i w_i

template <int n>
__global__ void round_rows(const float* from, bfloat16* to, int64_t to_stride, int64_t rows,
                           int64_t cols) {
  wait_for_previous_kernel();
  const int64_t col = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n;
  if (col >= cols) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const Pack<float, n> sums = load_pack<n>(from + row * cols + col);
    Pack<bfloat16, n> rounded;
    for (int i = 0; i < n; ++i) rounded.at[i] = from_float<bfloat16>(sums.at[i]);
    store_pack(to + row * to_stride + col, rounded);
  }
}

template <int n>
void launch_round_rows(const KernelCall& call, const float* sums) {
  constexpr int kThreads = 128;
  const View& dx = call.outputs[0];
  const dim3 grid(blocks_for(dx.cols(), int64_t{kThreads} * n),
                  static_cast<unsigned>(std::min<int64_t>(dx.rows(), 65535)));
  launch(call, grid, kThreads, round_rows<n>, sums, dx.as<bfloat16>(), dx.row_stride, dx.rows(),
         dx.cols());
}

void multiply_dx(const KernelCall& call, const CudaLinearOperands& operands) {
  const int parts = num_parts(call);
  const View& dx = call.outputs[0];
  const bool in_scratch = adds_in_scratch(call);
  float* const sums = reinterpret_cast<float*>(static_cast<char*>(operands.rest_of_scratch()) +
                                               cuda_matmul_scratch_bytes(0));
  MatmulStore store = {dx.data, dx.dtype, dx.row_stride};
  if (in_scratch) store = {sums, DType::kF32, dx.cols()};
  for_each_run(
      parts, [&](int i) { return adjacent::joined_in_dx(call, i, operands.are_copies()); },
      [&](int i) { return call.inputs[i].cols(); },
      [&](int begin, int64_t depth) {
        CudaMatmul matmul{dx.rows(), dx.cols(), depth};
        matmul.a = operands.of(begin, false);
        matmul.b = operands.of(parts + begin, true);
        matmul.c = store;
        matmul.c.accumulate = begin > 0;
        run_cuda_matmul(matmul, operands.rest_of_scratch(), call.stream);
      });
  if (!in_scratch) return;
  constexpr int kPack = kPackOf<bfloat16>;
  if (are_packable(kPack, View::contiguous(sums, DType::kF32, dx.shape), dx)) {
    launch_round_rows<kPack>(call, sums);
  } else {
    launch_round_rows<1>(call, sums);
  }
}

void run_dx(const KernelCall& call) {
  const CudaLinearOperands operands(call, "linear_dx");
  operands.make();
  multiply_dx(call, operands);
}

// ---- g_i (+)= dy_i^T x

// x is input `of_x` of the operands.
void multiply_dw(const KernelCall& call, const CudaLinearOperands& operands, int of_x) {
  const int parts = num_parts(call);
  const View& x = call.inputs[parts];
  for_each_run(
      parts, [&](int i) { return adjacent::joined_in_dw(call, i, operands.are_copies()); },
      [&](int i) { return call.inputs[i].cols(); },
      [&](int begin, int64_t rows) {
        const View& g = call.outputs[begin];
        CudaMatmul matmul{rows, x.cols(), x.rows()};
        matmul.a = operands.of(begin, true);
        matmul.b = operands.of(of_x, true);
        matmul.c = {g.data, g.dtype, g.row_stride, true, is_from_zero(call.attrs)};
        run_cuda_matmul(matmul, operands.rest_of_scratch(), call.stream);
      });
}

void run_dw(const KernelCall& call) {
  const CudaLinearOperands operands(call, "linear_dw");
  operands.make();
  multiply_dw(call, operands, num_parts(call));
}

// ---- dx and g_i

void run_dx_dw(const KernelCall& call) {
  const KernelCall dx = adjacent::dx_of(call), dw = adjacent::dw_of(call);
  if (rounds_apart(call)) {
    run_dx(dx);
    return run_dw(dw);
  }
  const CudaLinearOperands operands(call, "linear_dx_dw");
  operands.make();
  multiply_dx(dx, operands);
  multiply_dw(dw, operands, 2 * num_parts(call));
}

// ---- h_i += column sums of dy_i: each split of the rows is summed, then the sums in a fixed order

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kUnroll = 4;
static_assert(kTileCols == 32 * kPackOf<bfloat16>);
constexpr int64_t kMaxSplits = 128;
constexpr int64_t kLeastSplitRows = 64;

int64_t splits_of(int64_t rows, int64_t cols) {
  const int64_t most = std::min(kMaxSplits, (rows + kLeastSplitRows - 1) / kLeastSplitRows);
  return std::max<int64_t>(std::min(kBlocks / blocks_for(cols, kTileCols), most), 1);
}

// A lane adds a pack of n columns, and a warp every kWarps-th row of the split.
template <typename T, int n>
__global__ void __launch_bounds__(kThreads)
    sum_splits(const T* from, int64_t stride, float* sums_of_splits, int64_t rows, int64_t cols,
               int64_t split_rows) {
  wait_for_previous_kernel();
  __shared__ Pack<float, n> of_warps[kWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t first_col = int64_t{blockIdx.x} * 32 * n, col = first_col + lane * n;
  const int64_t first = blockIdx.y * split_rows;
  const int64_t end = first + split_rows < rows ? first + split_rows : rows;
  Pack<float, n> sums = {};
  for (int64_t row = first + warp; row < end && col < cols; row += kUnroll * kWarps) {
    Pack<T, n> values[kUnroll] = {};  // all on their way at once
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t r = row + u * kWarps;
      if (r < end) values[u] = load_pack<n>(from + r * stride + col);
    }
    for (int u = 0; u < kUnroll; ++u) {
      for (int i = 0; i < n; ++i) sums.at[i] += to_float(values[u].at[i]);
    }
  }
  of_warps[warp][lane] = sums;
  __syncthreads();
  for (int i = threadIdx.x; i < 32 * n && first_col + i < cols; i += kThreads) {
    float total = 0;
    for (int w = 0; w < kWarps; ++w) total += of_warps[w][i / n].at[i % n];
    sums_of_splits[blockIdx.y * cols + first_col + i] = total;
  }
}

// A block adds 32 columns, and a warp of it every kWarps-th split.
__global__ void __launch_bounds__(kThreads)
    add_splits(const float* sums_of_splits, int64_t splits, int64_t cols, float* sums) {
  wait_for_previous_kernel();
  __shared__ float of_warps[kWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t col = int64_t{blockIdx.x} * 32 + lane;
  float sum = 0;
  if (col < cols) {
    for (int64_t split = warp; split < splits; split += kWarps) {
      sum += sums_of_splits[split * cols + col];
    }
  }
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || col >= cols) return;
  float total = 0;
  for (int w = 0; w < kWarps; ++w) total += of_warps[w][lane];
  sums[col] += total;
}

template <typename T, int n>
void launch_sums(const KernelCall& call, const View& dy, float* sums) {
  const int64_t rows = dy.rows(), cols = dy.cols();
  const int64_t splits = splits_of(rows, cols), split_rows = (rows + splits - 1) / splits;
  auto* const of_splits = static_cast<float*>(call.scratch);
  const dim3 grid(blocks_for(cols, 32 * n), static_cast<unsigned>(splits));
  launch(call, grid, kThreads, sum_splits<T, n>, dy.as<const T>(), dy.row_stride, of_splits, rows,
         cols, split_rows);
  launch(call, blocks_for(cols, 32), kThreads, add_splits, of_splits, splits, cols, sums);
}

void run_db(const KernelCall& call) {
  for_each_run(
      num_parts(call), [&](int i) { return adjacent::joined_in_db(call, i); },
      [&](int i) { return call.inputs[i].cols(); },
      [&](int begin, int64_t cols) {
        View dy = call.inputs[begin];
        dy.shape = Shape{dy.rows(), cols};
        float* const sums = call.outputs[begin].as<float>();
        with_type(dy.dtype, [&](auto type) {
          using T = decltype(type);
          if (are_packable(kPackOf<T>, dy)) {
            launch_sums<T, kPackOf<T>>(call, dy, sums);
          } else {
            launch_sums<T, 1>(call, dy, sums);
          }
        });
      });
}

template <void (*run)(const KernelCall&)>
void choose(const KernelCall& call) {
  const OnlyChooseCudaMatmuls only_choose;
  run(call);
}

}  // namespace

void add_linear_cuda_kernels(KernelTable& table) {
  table["linear"] = {.run = run_forward, .choose = choose<run_forward>};
  table["linear_dx"] = {.run = run_dx, .choose = choose<run_dx>};
  table["linear_dw"] = {.run = run_dw, .choose = choose<run_dw>};
  table["linear_dx_dw"] = {.run = run_dx_dw, .choose = choose<run_dx_dw>};
  table["round_weights"] = {.run = run_round_weights_on_cuda};
  table["fp8_largest"] = {.run = run_fp8_largest_on_cuda};
  table["linear_db"] = {.run = run_db};
}

}  // namespace skein
