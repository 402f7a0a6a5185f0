#include "skein/ops/linear/linear_cuda_rules.h"

#include <algorithm>

#include "skein/ops/cuda_rules.h"
#include "skein/ops/linear/adjacent.h"
#include "skein/ops/linear/operands_cuda.h"

namespace skein {
namespace linear_cuda {

using adjacent::for_each_run;
using adjacent::num_parts;

bool adds_in_scratch(const KernelCall& call) {
  int runs = 0;
  for_each_run(
      num_parts(call), [&](int i) { return adjacent::joined_in_dx(call, i, is_fp8(call.attrs)); },
      [](int) { return int64_t{0}; }, [&](int, int64_t) { ++runs; });
  return runs > 1 && call.outputs[0].dtype != DType::kF32;
}

bool rounds_apart(const KernelCall& call) {
  if (!is_fp8(call.attrs)) return false;
  const KernelCall dx = adjacent::dx_of(call), dw = adjacent::dw_of(call);
  return CudaLinearOperands(dx, "linear_dx").are_in_8_bits() !=
         CudaLinearOperands(dw, "linear_dw").are_in_8_bits();
}

}  // namespace linear_cuda

namespace {

using namespace linear_cuda;  // NOLINT(google-build-using-namespace)

int64_t forward_scratch_bytes(const KernelCall& call) {
  int64_t bias_cols = 0;
  if (call.attrs.flag("bias")) {
    for (const View& y : call.outputs) bias_cols += y.cols();
  }
  return CudaLinearOperands(call, "linear").num_bytes() + cuda_matmul_scratch_bytes(bias_cols);
}

// Behind the operands.
int64_t multiply_dx_bytes(const KernelCall& call) {
  const int64_t sums = adds_in_scratch(call) ? call.outputs[0].shape.num_elements() : 0;
  return cuda_matmul_scratch_bytes(0) + sums * size_of(DType::kF32);
}

int64_t dx_scratch_bytes(const KernelCall& call) {
  return CudaLinearOperands(call, "linear_dx").num_bytes() + multiply_dx_bytes(call);
}

int64_t dw_scratch_bytes(const KernelCall& call) {
  return CudaLinearOperands(call, "linear_dw").num_bytes() + cuda_matmul_scratch_bytes(0);
}

int64_t dx_dw_scratch_bytes(const KernelCall& call) {
  const KernelCall dx = adjacent::dx_of(call), dw = adjacent::dw_of(call);
  if (rounds_apart(call)) return std::max(dx_scratch_bytes(dx), dw_scratch_bytes(dw));
  return CudaLinearOperands(call, "linear_dx_dw").num_bytes() + multiply_dx_bytes(dx);
}

// Every run of parts needs splits_of(rows, cols) * cols elements, which is at most this.
int64_t db_scratch_bytes(const KernelCall& call) {
  int64_t cols = 0;
  for (int i = 0; i < num_parts(call); ++i) cols += call.inputs[i].cols();
  return std::max(cols, kBlocks * kTileCols) * size_of(DType::kF32);
}

}  // namespace

void add_linear_cuda_rules(KernelTable& table) {
  table["linear"].scratch_bytes = forward_scratch_bytes;
  table["linear_dx"].scratch_bytes = dx_scratch_bytes;
  table["linear_dw"].scratch_bytes = dw_scratch_bytes;
  table["linear_dx_dw"].scratch_bytes = dx_dw_scratch_bytes;
  table["linear_db"].scratch_bytes = db_scratch_bytes;
}

}  // namespace skein
