// The largest magnitude of what an op writes, as one more output: what rounds the values to 8 bits
// then need not read them for it (skein/ops/linear/fp8_operands.h). An op that can find it infers
// that output, f32[1], where it has the attr `largest`; the pass use_fp8 sets it. It is that of the
// op's first OpDef::largest_outputs outputs.
//
// Values   bf16, as they are stored; NaNs are left out
// Placement each rank finds that of its own parts, and calls it replicated, since nobody sums or
//          moves it
#pragma once

#include <algorithm>
#include <cmath>

#include "skein/ir/kernel.h"
#include "skein/ir/op_def.h"

namespace skein {

inline bool finds_largest(const Attrs& attrs) {
  return attrs.has("largest") && attrs.flag("largest");
}

// The end of an op's infer.
inline std::vector<TensorType> with_largest(const OpCall& call, std::vector<TensorType> outputs) {
  if (!finds_largest(call.attrs)) return outputs;
  call.check(outputs[0].dtype == DType::kBF16, "`largest` of {}: expected bf16",
             dtype_name(outputs[0].dtype));
  outputs.push_back(TensorType::replicated(DType::kF32, Shape{1}, call.mesh));
  return outputs;
}

inline float largest_magnitude(const View& view) {
  float largest = 0;
#pragma omp parallel for reduction(max : largest) schedule(static)
  for (int64_t row = 0; row < view.rows(); ++row) {
    const bfloat16* x = view.as<const bfloat16>() + row * view.row_stride;
    for (int64_t col = 0; col < view.cols(); ++col) {
      largest = std::max(largest, std::fabs(static_cast<float>(x[col])));
    }
  }
  return largest;
}

// The end of an op's kernel on a CPU.
inline void store_largest(const KernelCall& call, const OpDef& op) {
  if (!finds_largest(call.attrs)) return;
  float largest = 0;
  for (int i = 0; i < op.largest_outputs; ++i) {
    largest = std::max(largest, largest_magnitude(call.outputs[i]));
  }
  *call.outputs.back().as<float>() = largest;
}

}  // namespace skein
