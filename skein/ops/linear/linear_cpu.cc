#include <algorithm>

#include "skein/ir/kernel.h"
#include "skein/ops/linear/column_sum_cpu.h"
#include "skein/ops/linear/linear.h"
#include "skein/ops/linear/matmul_cpu.h"

namespace skein {
namespace {

static_assert(kMaxMatmulTerms >= kMaxLinearParts);

int num_parts(const KernelCall& call) { return static_cast<int>(call.attrs.integer("parts")); }

const char* bytes_at(const View& view, int64_t elements) {
  return view.as<const char>() + elements * size_of(view.dtype);
}

// Whether `b` continues `a` to the right, or below, as one matrix.
bool right_of(const View& a, const View& b) {
  return b.row_stride == a.row_stride && b.data == bytes_at(a, a.cols()) &&
         a.row_stride >= a.cols() + b.cols();
}
bool below(const View& a, const View& b) {
  return b.row_stride == a.row_stride && b.cols() == a.cols() &&
         b.data == bytes_at(a, a.rows() * a.row_stride);
}
bool vector_after(const View& a, const View& b) { return b.data == bytes_at(a, a.cols()); }

// Splits parts into the longest runs that are one matrix; calls run(begin, sum of their sizes).
template <typename JoinsNext, typename Size, typename Run>
void for_each_run(int parts, JoinsNext joins_next, Size size, Run run) {
  for (int begin = 0; begin < parts;) {
    int end = begin + 1;
    int64_t total = size(begin);
    for (; end < parts && joins_next(end - 1); ++end) total += size(end);
    run(begin, total);
    begin = end;
  }
}

// Enough however the parts turn out to lie.
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
  const int parts = num_parts(call);
  const bool bias = call.attrs.flag("bias");
  const auto joins_next = [&](int i) {
    return right_of(call.outputs[i], call.outputs[i + 1]) &&
           below(call.inputs[1 + i], call.inputs[2 + i]) &&
           (!bias || vector_after(call.inputs[1 + parts + i], call.inputs[2 + parts + i]));
  };
  for_each_run(
      parts, joins_next, [&](int i) { return call.outputs[i].cols(); },
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
  const int parts = num_parts(call);
  const auto joins_next = [&](int i) {
    return right_of(call.inputs[i], call.inputs[i + 1]) &&
           below(call.inputs[parts + i], call.inputs[parts + i + 1]);
  };
  run_matmul(dx_matmul(call, joins_next), call.scratch);
}

int64_t dx_scratch_bytes(const KernelCall& call) {
  return std::max(matmul_scratch_bytes(dx_matmul(call, [](int) { return false; })),
                  matmul_scratch_bytes(dx_matmul(call, [](int) { return true; })));
}

// ---- g_i += dy_i^T x

Matmul dw_matmul(const KernelCall& call, int part, int64_t rows) {
  const View &dy = call.inputs[part], &x = call.inputs[num_parts(call)], &g = call.outputs[part];
  Matmul matmul{x.dtype, rows, x.cols(), 1, {}, {g.data, g.dtype, g.row_stride, true}};
  matmul.terms[0] = {x.rows(), {dy.data, dy.row_stride, true}, {x.data, x.row_stride, true}};
  return matmul;
}

void run_dw(const KernelCall& call) {
  const auto joins_next = [&](int i) {
    return right_of(call.inputs[i], call.inputs[i + 1]) &&
           below(call.outputs[i], call.outputs[i + 1]);
  };
  for_each_run(
      num_parts(call), joins_next, [&](int i) { return call.inputs[i].cols(); },
      [&](int begin, int64_t rows) { run_matmul(dw_matmul(call, begin, rows), call.scratch); });
}

int64_t dw_scratch_bytes(const KernelCall& call) {
  return most_scratch_bytes(
      num_parts(call), [&](int i) { return call.inputs[i].cols(); },
      [&](int begin, int64_t rows) { return dw_matmul(call, begin, rows); });
}

// ---- h_i += column sums of dy_i

void run_db(const KernelCall& call) {
  for (int i = 0; i < num_parts(call); ++i) {
    add_column_sums(call.inputs[i], call.outputs[i].as<float>());
  }
}

}  // namespace

void add_linear_cpu_kernels(KernelTable& table) {
  table["linear"] = {.run = run_forward, .scratch_bytes = forward_scratch_bytes};
  table["linear_dx"] = {.run = run_dx, .scratch_bytes = dx_scratch_bytes};
  table["linear_dw"] = {.run = run_dw, .scratch_bytes = dw_scratch_bytes};
  table["linear_db"] = {.run = run_db};
}

}  // namespace skein
