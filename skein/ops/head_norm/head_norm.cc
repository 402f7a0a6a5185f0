#include "skein/ops/head_norm/head_norm.h"

#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

int64_t check_head_dim(const OpCall& call) {
  const int64_t head_dim = call.attrs.integer("head_dim");
  call.check(head_dim > 0, "head_dim is {}: expected a positive number", head_dim);
  return head_dim;
}

// The number of heads over all ranks.
int64_t check_heads(const OpCall& call, int index, int64_t head_dim) {
  const TensorType& x = check_matrix(call, index);
  call.check(x.shape.dim(1) % head_dim == 0, "{} is not made of heads of {}", call.describe(index),
             head_dim);
  const int64_t local = x.local_shape(call.mesh).dim(1);
  call.check(local % head_dim == 0, "{} gives a rank {} columns: a head of {} would be split",
             call.describe(index), local, head_dim);
  return x.shape.dim(1) / head_dim;
}

void check_weight(const OpCall& call, int index, int64_t head_dim) {
  const TensorType& w = call.input(index);
  call.check(w.shape == Shape{head_dim} && is_compute_dtype(w.dtype),
             "{} must be f32[{}] or bf16[{}]", call.describe(index), head_dim, head_dim);
}

std::vector<TensorType> infer(const OpCall& call) {
  const int64_t head_dim = check_head_dim(call);
  const int64_t heads = check_heads(call, 0, head_dim);
  const TensorType& x = call.input(0);
  check_weight(call, 1, head_dim);
  const double epsilon = call.attrs.real("epsilon");
  call.check(epsilon >= 0, "epsilon is {}: expected a number that is not negative", epsilon);
  static constexpr std::array<std::string_view, 2> kRules = {"S0 R -> S0 S0", "S1 R -> S1 S1"};
  const auto placements = match_placements(call, {0, 1}, 2, kRules);
  return {{x.dtype, x.shape, placements[0]},
          {DType::kF32, Shape{x.shape.dim(0), heads}, placements[1]}};
}

double num_elements(const TensorType& type, const Mesh& mesh) {
  return static_cast<double>(type.local_bytes(mesh) / size_of(type.dtype));
}

Cost cost(const OpCall& call) {
  return {5 * num_elements(call.input(0), call.mesh), input_bytes(call), output_bytes(call)};
}

void backward(BackwardContext& context) {
  const ValueId dy = context.output_grad(0);
  if (dy == kNoValue) return;
  const ValueId sum = context.gradient_sum(1, dy);
  Graph& graph = context.graph();
  const auto outputs =
      graph.add(kHeadNormBackward, {dy, context.input(0), context.output(1), context.input(1), sum},
                {{"head_dim", context.node().attrs.integer("head_dim")}},
                {context.name(0), graph.value(sum).name});
  context.set_gradient_sum(1, outputs[1]);
  context.add_input_grad(0, outputs[0]);
}

Rematerialization rematerialize(const Node& node) {
  return {.inputs = node.inputs, .outputs = {0}};
}

std::vector<TensorType> infer_backward(const OpCall& call) {
  const int64_t head_dim = check_head_dim(call);
  const int64_t heads = check_heads(call, 1, head_dim);
  const TensorType& x = call.input(1);
  check_same(call, 0, 1);
  check_type(call, 2, DType::kF32, {x.shape.dim(0), heads});
  check_weight(call, 3, head_dim);
  check_type(call, 4, DType::kF32, {head_dim});
  static constexpr std::array<std::string_view, 3> kRules = {
      "S0 S0 S0 R P -> S0 P", "S1 S1 S1 R P -> S1 P", "P R R R P -> P P"};
  const auto placements = match_placements(call, {0, 1, 2, 3, 4}, 2, kRules);
  return {{x.dtype, x.shape, placements[0]}, {DType::kF32, Shape{head_dim}, placements[1]}};
}

Cost cost_backward(const OpCall& call) {
  return {10 * num_elements(call.input(1), call.mesh), input_bytes(call), output_bytes(call)};
}

Layout layout_backward(const OpCall&) { return {.aliases = {{.output = 1, .input = 4}}}; }

}  // namespace

const OpDef kHeadNorm = {.name = "head_norm",
                         .infer = infer,
                         .cost = cost,
                         .backward = backward,
                         .passes_pending = true,
                         .rematerialize = rematerialize};
const OpDef kHeadNormBackward = {.name = "head_norm_backward",
                                 .infer = infer_backward,
                                 .cost = cost_backward,
                                 .layout = layout_backward};

std::vector<const OpDef*> head_norm_ops() { return {&kHeadNorm, &kHeadNormBackward}; }

ValueId head_norm(Graph& graph, ValueId x, ValueId w, int64_t head_dim, double epsilon,
                  const std::string& name) {
  return graph.add(kHeadNorm, {x, w}, {{"head_dim", head_dim}, {"epsilon", epsilon}},
                   {name, name + ".rstd"})[0];
}

}  // namespace skein
