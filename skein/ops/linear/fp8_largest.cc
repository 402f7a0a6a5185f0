// The rules of fp8_largest.
#include "skein/ops/checks.h"
#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  call.check(call.num_inputs() >= 1 && call.num_inputs() <= kMaxLinearParts,
             "{} inputs: expected 1 to {}", call.num_inputs(), kMaxLinearParts);
  int found = 0;
  for (int i = 0; i < call.num_inputs(); ++i) {
    const TensorType& x = call.input(i);
    const bool is_found = x.dtype == DType::kF32 && x.shape == Shape{1};
    call.check(is_found || (x.dtype == DType::kBF16 && x.shape.rank() == 2),
               "{} must be a matrix of bf16, or a magnitude that was found", call.describe(i));
    found += is_found ? 1 : 0;
  }
  call.check(found <= kMaxFp8Groups, "{} magnitudes that were found: expected at most {}", found,
             kMaxFp8Groups);
  return {TensorType::replicated(DType::kF32, Shape{1}, call.mesh)};
}

Cost cost(const OpCall& call) {
  const int64_t bytes = input_bytes(call);
  return {static_cast<double>(bytes) / size_of(DType::kBF16), bytes, output_bytes(call)};
}

}  // namespace

const OpDef kFp8Largest = {.name = "fp8_largest", .infer = infer, .cost = cost};

}  // namespace skein
