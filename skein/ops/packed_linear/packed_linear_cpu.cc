#include "skein/ir/kernel.h"
#include "skein/ops/matmul/matmul_cpu.h"

namespace skein {
namespace {

Matmul product(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  Matmul matmul{x.dtype, x.rows(), y.cols(), 1, {}, {}};
  matmul.terms[0] = {x.cols(), {x.data, x.row_stride, false}, {}};
  matmul.packed_b = call.inputs[1].as<const uint32_t>();
  matmul.c = {y.data, y.dtype, y.row_stride};
  if (call.attrs.flag("bias")) {
    matmul.c.bias = call.inputs[2].data;
    matmul.c.bias_dtype = call.inputs[2].dtype;
  }
  return matmul;
}

void run(const KernelCall& call) { run_matmul(product(call), call.scratch); }

int64_t scratch_bytes(const KernelCall& call) { return matmul_scratch_bytes(product(call)); }

void run_pack(const KernelCall& call) {
  const View& w = call.inputs[0];
  Matmul matmul{w.dtype, 0, w.rows(), 1, {}, {}};
  matmul.terms[0] = {w.cols(), {}, {w.data, w.row_stride, false}};
  pack_matmul_b(matmul, call.outputs[0].as<uint32_t>());
}

}  // namespace

void add_packed_linear_cpu_kernels(KernelTable& table) {
  table["packed_linear"] = {.run = run, .scratch_bytes = scratch_bytes};
  table["pack_weight"] = {.run = run_pack};
}

}  // namespace skein
