#include "skein/ops/layer_norm/layer_norm.h"

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
  call.check(call.num_inputs() == 4, "has {} operands: expected x, residual or _, w, b or _",
             call.num_inputs());
  const TensorType& x = check_matrix(call, 0);
  if (call.has_input(1)) check_same(call, 0, 1);
  check_weight(call, 2, x.shape.dim(1));
  if (call.has_input(3)) check_same(call, 3, 2);
  const double epsilon = call.attrs.real("epsilon");
  call.check(epsilon >= 0, "epsilon is {}: expected a number that is not negative", epsilon);
  static constexpr std::string_view kRules[2][2] = {
      {"S0 R -> S0 S0 S0 S0", "S0 R R -> S0 S0 S0 S0"},
      {"S0 S0 R -> S0 S0 S0 S0", "S0 S0 R R -> S0 S0 S0 S0"}};
  const auto placements =
      match_placements(call, {0, 1, 2, 3}, 4, {&kRules[call.has_input(1)][call.has_input(3)], 1});
  const Shape tokens = {x.shape.dim(0)};
  return with_largest(call, {{x.dtype, x.shape, placements[0]},
                             {x.dtype, x.shape, placements[1]},
                             {DType::kF32, tokens, placements[2]},
                             {DType::kF32, tokens, placements[3]}});
}

double num_elements(const TensorType& type, const Mesh& mesh) {
  return static_cast<double>(type.local_bytes(mesh) / size_of(type.dtype));
}

Cost cost(const OpCall& call) {
  const TensorType& x = call.input(0);
  const int64_t alias = call.has_input(1) ? 0 : x.local_bytes(call.mesh);
  return {8 * num_elements(x, call.mesh), input_bytes(call), output_bytes(call) - alias};
}

Layout layout(const OpCall& call) {
  if (call.has_input(1)) return {};
  return {.aliases = {{.output = 1, .input = 0, .in_place = false}}};
}

void backward(BackwardContext& context) {
  const ValueId dy = context.output_grad(0), dh = context.output_grad(1);
  ValueId dx = dh;
  if (dy != kNoValue) {
    const bool has_bias = context.input(3) != kNoValue;
    const LayerNorm saved = {context.output(0), context.output(1), context.output(2),
                             context.output(3)};
    const LayerNormSums sums = {context.gradient_sum(2, dy),
                                has_bias ? context.gradient_sum(3, dy) : kNoValue};
    const LayerNormBackward grads = layer_norm_backward(context.graph(), dy, dh, saved,
                                                        context.input(2), sums, context.name(0));
    context.set_gradient_sum(2, grads.sums.w);
    if (has_bias) context.set_gradient_sum(3, grads.sums.b);
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
  return {.inputs = {node.outputs[1], kNoValue, node.inputs[2], node.inputs[3]}, .outputs = {0}};
}

std::vector<TensorType> infer_backward(const OpCall& call) {
  const TensorType& h = check_matrix(call, 2);
  const int64_t num_tokens = h.shape.dim(0), num_features = h.shape.dim(1);
  check_same(call, 0, 2);
  if (call.has_input(1)) check_same(call, 1, 2);
  for (const int statistic : {3, 4}) check_type(call, statistic, DType::kF32, {num_tokens});
  check_weight(call, 5, num_features);
  const bool has_bias = call.has_input(7);
  check_type(call, 6, DType::kF32, {num_features});
  if (has_bias) check_type(call, 7, DType::kF32, {num_features});
  static constexpr std::string_view kRules[2][2] = {
      {"S0 S0 S0 S0 R P -> S0 P", "S0 S0 S0 S0 R P P -> S0 P P"},
      {"S0 S0 S0 S0 S0 R P -> S0 P", "S0 S0 S0 S0 S0 R P P -> S0 P P"}};
  const auto placements = match_placements(call, {0, 1, 2, 3, 4, 5, 6, 7}, has_bias ? 3 : 2,
                                           {&kRules[call.has_input(1)][has_bias], 1});
  std::vector<TensorType> outputs = {{h.dtype, h.shape, placements[0]}};
  for (size_t i = 1; i < placements.size(); ++i) {
    outputs.push_back({DType::kF32, Shape{num_features}, placements[i]});
  }
  return with_largest(call, std::move(outputs));
}

Cost cost_backward(const OpCall& call) {
  return {14 * num_elements(call.input(2), call.mesh), input_bytes(call), output_bytes(call)};
}

Layout layout_backward(const OpCall& call) {
  if (!call.has_input(7)) return {.aliases = {{.output = 1, .input = 6}}};
  return {.aliases = {{.output = 1, .input = 6}, {.output = 2, .input = 7}}};
}

}  // namespace

const OpDef kLayerNorm = {.name = "layer_norm",
                          .infer = infer,
                          .cost = cost,
                          .backward = backward,
                          .layout = layout,
                          .largest_outputs = 1,
                          .rematerialize = rematerialize};
const OpDef kLayerNormBackward = {.name = "layer_norm_backward",
                                  .infer = infer_backward,
                                  .cost = cost_backward,
                                  .layout = layout_backward,
                                  .largest_outputs = 1};

std::vector<const OpDef*> layer_norm_ops() { return {&kLayerNorm, &kLayerNormBackward}; }

LayerNorm layer_norm(Graph& graph, ValueId x, ValueId residual, ValueId w, ValueId b,
                     double epsilon, const std::string& name) {
  const auto outputs = graph.add(kLayerNorm, {x, residual, w, b}, {{"epsilon", epsilon}},
                                 {name, name + ".h", name + ".mean", name + ".rstd"});
  return {outputs[0], outputs[1], outputs[2], outputs[3]};
}

LayerNormBackward layer_norm_backward(Graph& graph, ValueId dy, ValueId dh, const LayerNorm& saved,
                                      ValueId w, const LayerNormSums& sums,
                                      const std::string& name) {
  std::vector<std::string> names = {name, graph.value(sums.w).name};
  if (sums.b != kNoValue) names.push_back(graph.value(sums.b).name);
  const auto outputs = graph.add(
      kLayerNormBackward, {dy, dh, saved.h, saved.mean, saved.rstd, w, sums.w, sums.b}, {}, names);
  return {outputs[0], {outputs[1], sums.b == kNoValue ? kNoValue : outputs[2]}};
}

}  // namespace skein
