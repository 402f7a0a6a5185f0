#include <algorithm>

#include "skein/ir/kernel.h"
#include "skein/ops/linear/adjacent.h"
#include "skein/ops/linear/column_sum_cpu.h"
#include "skein/ops/linear/fp8_cpu.h"
#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear.h"
#include "skein/ops/matmul/matmul_cpu.h"

namespace skein {
namespace {

using adjacent::for_each_run;
using adjacent::num_parts;

static_assert(kMaxMatmulTerms >= kMaxLinearParts);

// Enough whether or not the parts turn out to be adjacent.
template <typename MakeMatmul, typename Size>
int64_t most_scratch_bytes(int parts, Size size, MakeMatmul make) {
  int64_t total = 0, most = 0;
  for (int i = 0; i < parts; ++i) {
    most = std::max(most, matmul_scratch_bytes(make(i, size(i))));
    total += size(i);
  }
  return std::max(most, matmul_scratch_bytes(make(0, total)));
}

// ---- y_i = x w_i^T + b_i

Matmul forward_matmul(const KernelCall& call, int part, int64_t cols) {
  const int parts = num_parts(call);
  const View &x = call.inputs[0], &w = call.inputs[1 + part], &y = call.outputs[part];
  Matmul matmul{x.dtype, x.rows(), cols, 1, {}, {}};
  matmul.terms[0] = {x.cols(), {x.data, x.row_stride, false}, {w.data, w.row_stride, false}};
  matmul.c = {y.data, y.dtype, y.row_stride};
  if (call.attrs.flag("bias")) {
    matmul.c.bias = call.inputs[1 + parts + part].data;
    matmul.c.bias_dtype = call.inputs[1 + parts + part].dtype;
  }
  return matmul;
}

void run_forward(const KernelCall& call) {
  for_each_run(
      num_parts(call), [&](int i) { return adjacent::joined_in_linear(call, i); },
      [&](int i) { return call.outputs[i].cols(); },
      [&](int begin, int64_t cols) {
        run_matmul(forward_matmul(call, begin, cols), call.scratch);
      });
}

int64_t forward_scratch_bytes(const KernelCall& call) {
  return most_scratch_bytes(
      num_parts(call), [&](int i) { return call.outputs[i].cols(); },
      [&](int begin, int64_t cols) { return forward_matmul(call, begin, cols); });
}

// ---- dx = sum_i dy_i w_i

template <typename JoinsNext>
Matmul dx_matmul(const KernelCall& call, JoinsNext joins_next) {
  const int parts = num_parts(call);
  const View& dx = call.outputs[0];
  Matmul matmul{dx.dtype, dx.rows(), dx.cols(), 0, {}, {dx.data, dx.dtype, dx.row_stride}};
  for_each_run(
      parts, joins_next, [&](int i) { return call.inputs[i].cols(); },
      [&](int begin, int64_t depth) {
        const View &dy = call.inputs[begin], &w = call.inputs[parts + begin];
        matmul.terms[matmul.num_terms++] = {
            depth, {dy.data, dy.row_stride, false}, {w.data, w.row_stride, true}};
      });
  return matmul;
}

void run_dx(const KernelCall& call) {
  // Where the operands happen to lie must not change a bit.
  const auto joins_next = [&](int i) {
    return call.inputs[i].cols() % kMatmulDepthGroup == 0 && adjacent::joined_in_dx(call, i);
  };
  run_matmul(dx_matmul(call, joins_next), call.scratch);
}

// Enough for any parts that are joined: at multiples of kMatmulDepthGroup the packed operands take
// what those of the separate terms do.
int64_t dx_scratch_bytes(const KernelCall& call) {
  return std::max(matmul_scratch_bytes(dx_matmul(call, [](int) { return false; })),
                  matmul_scratch_bytes(dx_matmul(call, [](int) { return true; })));
}

// ---- g_i (+)= dy_i^T x

Matmul dw_matmul(const KernelCall& call, int part, int64_t rows) {
  const View &dy = call.inputs[part], &x = call.inputs[num_parts(call)], &g = call.outputs[part];
  Matmul matmul{x.dtype, rows, x.cols(),
                1,       {},   {g.data, g.dtype, g.row_stride, true, is_from_zero(call.attrs)}};
  matmul.terms[0] = {x.rows(), {dy.data, dy.row_stride, true}, {x.data, x.row_stride, true}};
  return matmul;
}

void run_dw(const KernelCall& call) {
  for_each_run(
      num_parts(call), [&](int i) { return adjacent::joined_in_dw(call, i); },
      [&](int i) { return call.inputs[i].cols(); },
      [&](int begin, int64_t rows) { run_matmul(dw_matmul(call, begin, rows), call.scratch); });
}

int64_t dw_scratch_bytes(const KernelCall& call) {
  return most_scratch_bytes(
      num_parts(call), [&](int i) { return call.inputs[i].cols(); },
      [&](int begin, int64_t rows) { return dw_matmul(call, begin, rows); });
}

// ---- dx and g_i

void run_dx_dw(const KernelCall& call) {
  run_dx(adjacent::dx_of(call));
  run_dw(adjacent::dw_of(call));
}

int64_t dx_dw_scratch_bytes(const KernelCall& call) {
  return std::max(dx_scratch_bytes(adjacent::dx_of(call)), dw_scratch_bytes(adjacent::dw_of(call)));
}

// ---- h_i += column sums of dy_i

void run_db(const KernelCall& call) {
  for (int i = 0; i < num_parts(call); ++i) {
    add_column_sums(call.inputs[i], call.outputs[i].as<float>());
  }
}

// ---- on the operands themselves, or on copies rounded to 8 bits

void run_product(const KernelCall& call, std::string_view op, void (*run)(const KernelCall&)) {
  if (!is_fp8(call.attrs)) return run(call);
  round_fp8_operands(call, op);
  run(with_fp8_operands(call, op));
}

int64_t product_scratch_bytes(const KernelCall& call, std::string_view op,
                              int64_t (*bytes)(const KernelCall&)) {
  if (!is_fp8(call.attrs)) return bytes(call);
  return fp8_operand_bytes(call, op) + bytes(with_fp8_operands(call, op));
}

}  // namespace

void add_linear_cpu_kernels(KernelTable& table) {
  table["linear"] = {
      .run = [](const KernelCall& call) { run_product(call, "linear", run_forward); },
      .scratch_bytes =
          [](const KernelCall& call) {
            return product_scratch_bytes(call, "linear", forward_scratch_bytes);
          }};
  table["linear_dx"] = {
      .run = [](const KernelCall& call) { run_product(call, "linear_dx", run_dx); },
      .scratch_bytes =
          [](const KernelCall& call) {
            return product_scratch_bytes(call, "linear_dx", dx_scratch_bytes);
          }};
  table["linear_dw"] = {
      .run = [](const KernelCall& call) { run_product(call, "linear_dw", run_dw); },
      .scratch_bytes =
          [](const KernelCall& call) {
            return product_scratch_bytes(call, "linear_dw", dw_scratch_bytes);
          }};
  table["linear_dx_dw"] = {
      .run = [](const KernelCall& call) { run_product(call, "linear_dx_dw", run_dx_dw); },
      .scratch_bytes =
          [](const KernelCall& call) {
            return product_scratch_bytes(call, "linear_dx_dw", dx_dw_scratch_bytes);
          }};
  table["round_weights"] = {.run = run_round_weights};
  table["fp8_largest"] = {.run = run_fp8_largest};
  table["linear_db"] = {.run = run_db};
}

}  // namespace skein
