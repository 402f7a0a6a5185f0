// Checks for the shape inference of several ops.
#pragma once

#include "skein/ir/op_def.h"

namespace skein {

// Activations and weights of a model are f32 or bf16.
inline bool is_compute_dtype(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

// A matrix of f32 or bf16; returns its type.
inline const TensorType& check_matrix(const OpCall& call, int index) {
  const TensorType& type = call.input(index);
  call.check(type.shape.rank() == 2 && is_compute_dtype(type.dtype),
             "{} must be a matrix of f32 or bf16", call.describe(index));
  return type;
}

inline void check_same(const OpCall& call, int a, int b) {
  call.check(
      call.input(a).shape == call.input(b).shape && call.input(a).dtype == call.input(b).dtype,
      "{} does not match {}", call.describe(a), call.describe(b));
}

inline void check_type(const OpCall& call, int index, DType dtype, const Shape& shape) {
  call.check(call.input(index).dtype == dtype && call.input(index).shape == shape,
             "{} must be {}{}", call.describe(index), dtype_name(dtype), shape.to_string());
}

// Bytes of all inputs, or all outputs, on one rank.
inline int64_t input_bytes(const OpCall& call) {
  int64_t bytes = 0;
  for (const TensorType* type : call.inputs) bytes += type ? type->local_bytes(call.mesh) : 0;
  return bytes;
}
inline int64_t output_bytes(const OpCall& call) {
  int64_t bytes = 0;
  for (const TensorType* type : call.outputs) bytes += type->local_bytes(call.mesh);
  return bytes;
}

}  // namespace skein
