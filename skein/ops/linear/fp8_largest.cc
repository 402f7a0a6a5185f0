// The rules of fp8_largest.
#include "skein/ops/checks.h"
#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  call.check(call.num_inputs() >= 1 && call.num_inputs() <= kMaxLinearParts,
             "{} inputs: expected 1 to {}", call.num_inputs(), kMaxLinearParts);
  for (int i = 0; i < call.num_inputs(); ++i) {
    call.check(check_matrix(call, i).dtype == DType::kBF16, "{} must be bf16", call.describe(i));
  }
  return {TensorType::replicated(DType::kF32, Shape{1}, call.mesh)};
}

Cost cost(const OpCall& call) {
  const int64_t bytes = input_bytes(call);
  return {static_cast<double>(bytes) / size_of(DType::kBF16), bytes, output_bytes(call)};
}

}  // namespace

const OpDef kFp8Largest = {.name = "fp8_largest", .infer = infer, .cost = cost};

}  // namespace skein
