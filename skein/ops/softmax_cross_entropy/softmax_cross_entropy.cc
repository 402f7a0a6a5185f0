#include "skein/ops/softmax_cross_entropy/softmax_cross_entropy.h"

#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

DType gradient_dtype(const OpCall& call) {
  const std::string& name = call.attrs.text("gradient_dtype");
  const std::optional<DType> dtype = parse_dtype(name);
  call.check(dtype.has_value() && is_compute_dtype(*dtype),
             "gradient_dtype is '{}': expected \"f32\" or \"bf16\"", name);
  return *dtype;
}

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& logits = check_matrix(call, 0);
  const int64_t rows = logits.shape.dim(0);
  check_type(call, 1, DType::kI32, {rows});
  static constexpr std::array<std::string_view, 1> kRules = {"S0 S0 -> S0 S0"};
  const auto placements = match_placements(call, {0, 1}, 2, kRules);
  return {{DType::kF32, Shape{rows}, placements[0]},
          {gradient_dtype(call), logits.shape, placements[1]}};
}

Cost cost(const OpCall& call) {
  const TensorType& logits = call.input(0);
  const double elements = logits.local_bytes(call.mesh) / size_of(logits.dtype);
  return {30 * elements, input_bytes(call), output_bytes(call)};
}

Layout layout(const OpCall& call) {
  if (gradient_dtype(call) != call.input(0).dtype) return {};
  return {.aliases = {{.output = 1, .input = 0}}};
}

void backward(BackwardContext& context) {
  const ValueId grad = context.output_grad(0);
  if (context.output_grad(1) != kNoValue || (grad != kNoValue && grad != kUnitGrad)) {
    fail(ErrorCode::kInvalid, "[softmax_cross_entropy] '{}' may only be summed into the loss",
         context.graph().value(context.output(0)).name);
  }
  if (grad == kUnitGrad) context.add_input_grad(0, context.output(1));
}

}  // namespace

const OpDef kSoftmaxCrossEntropy = {.name = "softmax_cross_entropy",
                                    .infer = infer,
                                    .cost = cost,
                                    .backward = backward,
                                    .layout = layout};

std::vector<const OpDef*> softmax_cross_entropy_ops() { return {&kSoftmaxCrossEntropy}; }

SoftmaxCrossEntropy softmax_cross_entropy(Graph& graph, ValueId logits, ValueId labels,
                                          DType gradient_dtype, const std::string& name) {
  const auto outputs = graph.add(kSoftmaxCrossEntropy, {logits, labels},
                                 {{"gradient_dtype", std::string(dtype_name(gradient_dtype))}},
                                 {name, "d." + graph.value(logits).name});
  return {outputs[0], outputs[1]};
}

}  // namespace skein
