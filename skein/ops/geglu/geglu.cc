#include "skein/ops/geglu/geglu.h"

#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"
#include "skein/ops/gelu/gelu.h"
#include "skein/ops/largest.h"

namespace skein {
namespace {

double num_elements(const OpCall& call) {
  const TensorType& type = call.input(0);
  return static_cast<double>(type.local_bytes(call.mesh) / size_of(type.dtype));
}

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& gate = check_matrix(call, 0);
  check_same(call, 0, 1);
  static constexpr std::array<std::string_view, 2> kRules = {"S0 S0 -> S0", "S1 S1 -> S1"};
  return with_largest(call,
                      {{gate.dtype, gate.shape, match_placements(call, {0, 1}, 1, kRules)[0]}});
}

Cost cost(const OpCall& call) {
  return {30 * num_elements(call), input_bytes(call), output_bytes(call)};
}

// One matrix product produces gate and up, side by side.
Layout layout(const OpCall&) { return {.bundles = {{.operands = {0, 1}, .dim = 1}}}; }

void backward(BackwardContext& context) {
  const ValueId dy = context.output_grad(0);
  if (dy == kNoValue) return;
  const GegluBackward grads =
      geglu_backward(context.graph(), dy, context.input(0), context.input(1),
                     is_approximate_gelu(context.node().attrs), context.name(0), context.name(1));
  context.add_input_grad(0, grads.dgate);
  context.add_input_grad(1, grads.dup);
}

Rematerialization rematerialize(const Node& node) {
  return {.inputs = node.inputs, .outputs = {0}};
}

std::vector<TensorType> infer_backward(const OpCall& call) {
  const TensorType& gate = check_matrix(call, 1);
  check_same(call, 0, 1);
  check_same(call, 1, 2);
  static constexpr std::array<std::string_view, 2> kRules = {"S0 S0 S0 -> S0 S0",
                                                             "S1 S1 S1 -> S1 S1"};
  const auto placements = match_placements(call, {0, 1, 2}, 2, kRules);
  return with_largest(
      call, {{gate.dtype, gate.shape, placements[0]}, {gate.dtype, gate.shape, placements[1]}});
}

Cost cost_backward(const OpCall& call) {
  return {40 * num_elements(call), input_bytes(call), output_bytes(call)};
}

Layout layout_backward(const OpCall&) {
  return {
      .bundles = {{.operands = {1, 2}, .dim = 1}, {.outputs = true, .operands = {0, 1}, .dim = 1}}};
}

}  // namespace

const OpDef kGeglu = {.name = "geglu",
                      .infer = infer,
                      .cost = cost,
                      .backward = backward,
                      .layout = layout,
                      .largest_outputs = 1,
                      .rematerialize = rematerialize};
const OpDef kGegluBackward = {.name = "geglu_backward",
                              .infer = infer_backward,
                              .cost = cost_backward,
                              .layout = layout_backward,
                              .largest_outputs = 2};

std::vector<const OpDef*> geglu_ops() { return {&kGeglu, &kGegluBackward}; }

ValueId geglu(Graph& graph, ValueId gate, ValueId up, bool approximate, const std::string& name) {
  return graph.add1(kGeglu, {gate, up}, {{"approximate", approximate}}, name);
}

GegluBackward geglu_backward(Graph& graph, ValueId dy, ValueId gate, ValueId up, bool approximate,
                             const std::string& dgate_name, const std::string& dup_name) {
  const auto outputs = graph.add(kGegluBackward, {dy, gate, up}, {{"approximate", approximate}},
                                 {dgate_name, dup_name});
  return {outputs[0], outputs[1]};
}

}  // namespace skein
