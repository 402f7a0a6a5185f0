#include "skein/ops/add/add.h"

#include <array>

#include "skein/ir/backward.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& a = call.input(0);
  const TensorType& b = call.input(1);
  call.check(a.shape == b.shape && a.dtype == b.dtype, "{} does not match {}", call.describe(0),
             call.describe(1));
  call.check(a.dtype != DType::kI32, "{} must be f32, bf16 or f64", call.describe(0));
  static constexpr std::array<std::string_view, 3> kRules = {"S0 S0 -> S0", "S1 S1 -> S1",
                                                             "P P -> P"};
  return {{a.dtype, a.shape, match_placements(call, {0, 1}, 1, kRules)[0]}};
}

Cost cost(const OpCall& call) {
  const int64_t bytes = call.output(0).local_bytes(call.mesh);
  return {static_cast<double>(bytes / size_of(call.output(0).dtype)), 2 * bytes, bytes};
}

void backward(BackwardContext& context) {
  const ValueId grad = context.output_grad(0);
  if (grad == kNoValue) return;
  context.add_input_grad(0, grad);
  context.add_input_grad(1, grad);
}

}  // namespace

const OpDef kAdd = {.name = "add", .infer = infer, .cost = cost, .backward = backward};

std::vector<const OpDef*> add_ops() { return {&kAdd}; }

ValueId add(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add1(kAdd, {a, b}, {}, name);
}

}  // namespace skein
