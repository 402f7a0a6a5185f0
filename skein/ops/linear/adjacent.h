// Which operands of linear and its derivatives form one matrix in memory: wq, wk, wv below each
// other, their outputs side by side. Kernels run each longest run of such parts as one product.
#pragma once

#include "skein/ir/kernel.h"
#include "skein/ops/linear/fp8_operands.h"

namespace skein::adjacent {

inline const char* bytes_at(const View& view, int64_t elements) {
  return view.as<const char>() + elements * size_of(view.dtype);
}

// Whether `b` continues `a` to the right, or below, as one matrix.
inline bool right_of(const View& a, const View& b) {
  return b.row_stride == a.row_stride && b.data == bytes_at(a, a.cols()) &&
         a.row_stride >= a.cols() + b.cols();
}
inline bool below(const View& a, const View& b) {
  return b.row_stride == a.row_stride && b.cols() == a.cols() &&
         b.data == bytes_at(a, a.rows() * a.row_stride);
}
inline bool vector_after(const View& a, const View& b) { return b.data == bytes_at(a, a.cols()); }

inline int num_parts(const KernelCall& call) {
  return static_cast<int>(call.attrs.integer("parts"));
}

// The linear_dx and the linear_dw of a linear_dx_dw, as calls of their own.
inline KernelCall dx_of(const KernelCall& call) {
  KernelCall dx = call;
  const int parts = num_parts(call);
  const auto own = dx.inputs.begin() + 3 * parts + 1;
  if (is_fp8(call.attrs)) dx.inputs.erase(own + kFp8Weights + 1);  // x's largest magnitude
  dx.inputs.erase(dx.inputs.begin() + 2 * parts, dx.inputs.begin() + 3 * parts + 1);
  dx.outputs.resize(1);
  return dx;
}
inline KernelCall dw_of(const KernelCall& call) {
  KernelCall dw = call;
  const int parts = num_parts(call);
  const auto own = dw.inputs.begin() + 3 * parts + 1;
  if (has_kept_weights(call.attrs, "linear_dx_dw")) dw.inputs.pop_back();
  if (is_fp8(call.attrs)) dw.inputs.erase(own + kFp8Weights);
  dw.inputs.erase(dw.inputs.begin() + parts, dw.inputs.begin() + 2 * parts);
  dw.outputs.erase(dw.outputs.begin());
  return dw;
}

// Whether parts i and i + 1 form one matrix in everything that an op reads and writes. `copied`:
// the product reads copies of its inputs, which always do.
inline bool joined_in_linear(const KernelCall& call, int i, bool copied = false) {
  const int parts = num_parts(call);
  return right_of(call.outputs[i], call.outputs[i + 1]) &&
         (copied || below(call.inputs[1 + i], call.inputs[2 + i])) &&
         (!call.attrs.flag("bias") ||
          vector_after(call.inputs[1 + parts + i], call.inputs[2 + parts + i]));
}
inline bool joined_in_dx(const KernelCall& call, int i, bool copied = false) {
  const int parts = num_parts(call);
  return copied || (right_of(call.inputs[i], call.inputs[i + 1]) &&
                    below(call.inputs[parts + i], call.inputs[parts + i + 1]));
}
inline bool joined_in_dw(const KernelCall& call, int i, bool copied = false) {
  return (copied || right_of(call.inputs[i], call.inputs[i + 1])) &&
         below(call.outputs[i], call.outputs[i + 1]);
}
inline bool joined_in_db(const KernelCall& call, int i) {
  return right_of(call.inputs[i], call.inputs[i + 1]) &&
         vector_after(call.outputs[i], call.outputs[i + 1]);
}

// Splits parts into the longest runs that form one matrix; calls run(begin, total size) for each.
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

}  // namespace skein::adjacent
