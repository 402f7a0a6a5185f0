// The rules of round_weights.
#include "skein/ops/checks.h"
#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear.h"

namespace skein {
namespace {

int num_weights(const OpCall& call) {
  const int weights = call.num_inputs() - 2;
  call.check(weights >= 1 && weights <= kMaxLinearParts, "{} weights: expected 1 to {}", weights,
             kMaxLinearParts);
  return weights;
}

std::vector<TensorType> infer(const OpCall& call) {
  const int weights = num_weights(call);
  const int64_t cols = check_matrix(call, 0).local_shape(call.mesh).dim(1);
  int64_t elements = 0;
  for (int i = 0; i < weights; ++i) {
    const Shape w = check_matrix(call, i).local_shape(call.mesh);
    call.check(call.input(i).dtype == DType::kBF16 && w.dim(1) == cols &&
                   w.dim(0) % kFp8Multiple == 0 && w.dim(1) % kFp8Multiple == 0,
               "{} must be bf16, of {} columns, and both sizes multiples of {}", call.describe(i),
               cols, kFp8Multiple);
    elements += w.num_elements();
  }
  check_type(call, weights, DType::kF32, Shape{1});
  check_type(call, weights + 1, DType::kBF16, Shape{elements});
  return {call.input(weights), call.input(weights + 1)};
}

Cost cost(const OpCall& call) {
  const int64_t rounded = call.output(1).local_bytes(call.mesh);
  return {static_cast<double>(rounded), 2 * rounded, output_bytes(call)};
}

Layout layout(const OpCall& call) {
  const int weights = num_weights(call);
  return {.aliases = {{.output = 0, .input = weights}, {.output = 1, .input = weights + 1}}};
}

}  // namespace

const OpDef kRoundWeights = {
    .name = "round_weights", .infer = infer, .cost = cost, .layout = layout};

}  // namespace skein
