#include "skein/ops/gelu/gelu.h"

#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"
#include "skein/ops/largest.h"

namespace skein {
namespace {

double num_elements(const OpCall& call) {
  const TensorType& type = call.input(0);
  return static_cast<double>(type.local_bytes(call.mesh) / size_of(type.dtype));
}

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& x = check_matrix(call, 0);
  static constexpr std::array<std::string_view, 2> kRules = {"S0 -> S0", "S1 -> S1"};
  return with_largest(call, {{x.dtype, x.shape, match_placements(call, {0}, 1, kRules)[0]}});
}

Cost cost(const OpCall& call) {
  return {30 * num_elements(call), input_bytes(call), output_bytes(call)};
}

void backward(BackwardContext& context) {
  const ValueId dy = context.output_grad(0);
  if (dy == kNoValue) return;
  context.add_input_grad(0,
                         gelu_backward(context.graph(), dy, context.input(0),
                                       is_approximate_gelu(context.node().attrs), context.name(0)));
}

Rematerialization rematerialize(const Node& node) {
  return {.inputs = node.inputs, .outputs = {0}};
}

std::vector<TensorType> infer_backward(const OpCall& call) {
  const TensorType& x = check_matrix(call, 1);
  check_same(call, 0, 1);
  static constexpr std::array<std::string_view, 2> kRules = {"S0 S0 -> S0", "S1 S1 -> S1"};
  return with_largest(call, {{x.dtype, x.shape, match_placements(call, {0, 1}, 1, kRules)[0]}});
}

Cost cost_backward(const OpCall& call) {
  return {35 * num_elements(call), input_bytes(call), output_bytes(call)};
}

}  // namespace

const OpDef kGelu = {.name = "gelu",
                     .infer = infer,
                     .cost = cost,
                     .backward = backward,
                     .largest_outputs = 1,
                     .rematerialize = rematerialize};
const OpDef kGeluBackward = {
    .name = "gelu_backward", .infer = infer_backward, .cost = cost_backward, .largest_outputs = 1};

std::vector<const OpDef*> gelu_ops() { return {&kGelu, &kGeluBackward}; }

bool is_approximate_gelu(const Attrs& attrs) {
  return attrs.has("approximate") && attrs.flag("approximate");
}

ValueId gelu(Graph& graph, ValueId x, bool approximate, const std::string& name) {
  return graph.add1(kGelu, {x}, {{"approximate", approximate}}, name);
}

ValueId gelu_backward(Graph& graph, ValueId dy, ValueId x, bool approximate,
                      const std::string& name) {
  return graph.add1(kGeluBackward, {dy, x}, {{"approximate", approximate}}, name);
}

}  // namespace skein
