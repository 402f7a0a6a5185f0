#include "skein/ops/sum/sum.h"

#include <array>

#include "skein/base/numbers/exact_sum.h"
#include "skein/ir/backward.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  check_type(call, 0, DType::kF64, {exact_sum::kBins});
  const TensorType& terms = call.input(1);
  call.check(terms.dtype == DType::kF32 && terms.shape.rank() == 1, "{} must be f32[terms]",
             call.describe(1));
  static constexpr std::array<std::string_view, 2> kRules = {"P S0 -> P", "P P -> P"};
  return {{DType::kF64, call.input(0).shape, match_placements(call, {0, 1}, 1, kRules)[0]}};
}

Cost cost(const OpCall& call) {
  return {static_cast<double>(call.input(1).local_bytes(call.mesh) / 4), input_bytes(call),
          output_bytes(call)};
}

void backward(BackwardContext& context) {
  if (context.output_grad(0) == kNoValue) return;
  if (context.output_grad(0) != kUnitGrad) {
    fail(ErrorCode::kInvalid, "[add_to_sum] '{}' must be the loss, or summed into it",
         context.graph().value(context.output(0)).name);
  }
  for (const int input : {0, 1}) {
    if (context.needs_grad(input)) context.add_input_grad(input, kUnitGrad);
  }
}

Layout layout(const OpCall&) { return {.aliases = {{.output = 0, .input = 0}}}; }

}  // namespace

const OpDef kAddToSum = {
    .name = "add_to_sum", .infer = infer, .cost = cost, .backward = backward, .layout = layout};

std::vector<const OpDef*> sum_ops() { return {&kAddToSum}; }

ValueId add_to_sum(Graph& graph, ValueId sum, ValueId terms) {
  return graph.add1(kAddToSum, {sum, terms}, {}, graph.value(sum).name);
}

}  // namespace skein
