#include "skein/ops/rms_norm/rms_norm.h"

#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"
#include "skein/ops/largest.h"

namespace skein {
namespace {

void check_weight(const OpCall& call, int index, int64_t num_features) {
  const TensorType& w = call.input(index);
  call.check(w.shape == Shape{num_features} && is_compute_dtype(w.dtype),
             "{} must be f32[{}] or bf16[{}]", call.describe(index), num_features, num_features);
}

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& x = check_matrix(call, 0);
  if (call.has_input(1)) check_same(call, 0, 1);
  check_weight(call, 2, x.shape.dim(1));
  const double epsilon = call.attrs.real("epsilon");
  call.check(epsilon >= 0, "epsilon is {}: expected a number that is not negative", epsilon);
  static constexpr std::array<std::string_view, 1> kRules = {"S0 R -> S0 S0 S0"};
  static constexpr std::array<std::string_view, 1> kDeltaRules = {"S0 S0 R -> S0 S0 S0"};
  const auto placements = call.has_input(1) ? match_placements(call, {0, 1, 2}, 3, kDeltaRules)
                                            : match_placements(call, {0, 2}, 3, kRules);
  return with_largest(call, {{x.dtype, x.shape, placements[0]},
                             {x.dtype, x.shape, placements[1]},
                             {DType::kF32, Shape{x.shape.dim(0)}, placements[2]}});
}

Cost cost(const OpCall& call) {
  const TensorType& x = call.input(0);
  const double elements = x.local_bytes(call.mesh) / size_of(x.dtype);
  const int64_t alias = call.has_input(1) ? 0 : x.local_bytes(call.mesh);
  return {5 * elements, input_bytes(call), output_bytes(call) - alias};
}

Layout layout(const OpCall& call) {
  if (call.has_input(1)) return {};
  return {.aliases = {{.output = 1, .input = 0, .in_place = false}}};
}

void backward(BackwardContext& context) {
  const ValueId dy = context.output_grad(0), dh = context.output_grad(1);
  ValueId dx = dh;
  if (dy != kNoValue) {
    const RmsNormBackward grads =
        rms_norm_backward(context.graph(), dy, dh, context.output(1), context.output(2),
                          context.input(2), context.gradient_sum(2, dy), context.name(0));
    context.set_gradient_sum(2, grads.sum);
    dx = grads.dx;
  }
  if (dx == kNoValue) return;
  for (const int input : {0, 1}) {
    if (context.input(input) != kNoValue && context.needs_grad(input)) {
      context.add_input_grad(input, dx);
    }
  }
}

// Recomputes y from the kept h, the input of the normalization.
Rematerialization rematerialize(const Node& node) {
  return {.inputs = {node.outputs[1], kNoValue, node.inputs[2]}, .outputs = {0}};
}

std::vector<TensorType> infer_backward(const OpCall& call) {
  const TensorType& h = check_matrix(call, 2);
  const int64_t num_tokens = h.shape.dim(0), num_features = h.shape.dim(1);
  check_same(call, 0, 2);
  if (call.has_input(1)) check_same(call, 1, 2);
  check_type(call, 3, DType::kF32, {num_tokens});
  check_weight(call, 4, num_features);
  check_type(call, 5, DType::kF32, {num_features});
  static constexpr std::array<std::string_view, 1> kRules = {"S0 S0 S0 R P -> S0 P"};
  static constexpr std::array<std::string_view, 1> kResidualRules = {"S0 S0 S0 S0 R P -> S0 P"};
  const auto placements = call.has_input(1)
                              ? match_placements(call, {0, 1, 2, 3, 4, 5}, 2, kResidualRules)
                              : match_placements(call, {0, 2, 3, 4, 5}, 2, kRules);
  return with_largest(
      call, {{h.dtype, h.shape, placements[0]}, {DType::kF32, Shape{num_features}, placements[1]}});
}

Cost cost_backward(const OpCall& call) {
  const TensorType& h = call.input(2);
  const double elements = h.local_bytes(call.mesh) / size_of(h.dtype);
  return {10 * elements, input_bytes(call), output_bytes(call)};
}

Layout layout_backward(const OpCall&) { return {.aliases = {{.output = 1, .input = 5}}}; }

}  // namespace

const OpDef kRmsNorm = {.name = "rms_norm",
                        .infer = infer,
                        .cost = cost,
                        .backward = backward,
                        .layout = layout,
                        .largest_outputs = 1,
                        .rematerialize = rematerialize};
const OpDef kRmsNormBackward = {.name = "rms_norm_backward",
                                .infer = infer_backward,
                                .cost = cost_backward,
                                .layout = layout_backward,
                                .largest_outputs = 1};

std::vector<const OpDef*> rms_norm_ops() { return {&kRmsNorm, &kRmsNormBackward}; }

RmsNorm rms_norm(Graph& graph, ValueId x, ValueId delta, ValueId w, double epsilon,
                 const std::string& name) {
  const auto outputs = graph.add(kRmsNorm, {x, delta, w}, {{"epsilon", epsilon}},
                                 {name, name + ".h", name + ".rstd"});
  return {outputs[0], outputs[1], outputs[2]};
}

RmsNormBackward rms_norm_backward(Graph& graph, ValueId dy, ValueId dh, ValueId h, ValueId rstd,
                                  ValueId w, ValueId sum, const std::string& name) {
  const auto outputs =
      graph.add(kRmsNormBackward, {dy, dh, h, rstd, w, sum}, {}, {name, graph.value(sum).name});
  return {outputs[0], outputs[1]};
}

}  // namespace skein
