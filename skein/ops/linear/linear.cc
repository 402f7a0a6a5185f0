#include "skein/ops/linear/linear.h"

#include "skein/ir/backward.h"
#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear_rules.h"

namespace skein {
namespace {

bool has_bias(const OpCall& call) { return call.attrs.flag("bias"); }

// A bias is placed as the rows of its weight. If y is a pending sum, adding b on every rank would
// count it once per rank, so b must be a pending sum as well.
void check_bias(const OpCall& call, int weight, int bias, const Placements& of_y) {
  const TensorType& b = call.input(bias);
  call.check(
      b.shape == Shape({call.input(weight).shape.dim(0)}) && b.dtype == call.input(weight).dtype,
      "{} does not match {}", call.describe(bias), call.describe(weight));
  for (int axis = 0; axis < call.mesh.num_axes(); ++axis) {
    const Placement of_w = call.input(weight).placements[axis];
    const Placement expected = of_y[axis].is_partial() ? Placement::partial()
                               : of_w.is_sharded()     ? Placement::sharded(0)
                                                       : Placement::replicated();
    call.check(b.placements.at(axis) == expected, "{} with {}: expected {} on axis {}",
               call.describe(bias), call.describe(weight), expected.to_string(),
               call.mesh.axis(axis).name);
  }
}

std::vector<TensorType> infer(const OpCall& call) {
  const int parts = linear_rules::num_parts(
      call,
      {.lists = has_bias(call) ? 2 : 1, .singles = 1, .fp8_magnitudes = 2, .first_weight = 1});
  const TensorType& x = check_matrix(call, 0);
  std::vector<TensorType> outputs;
  for (int i = 1; i <= parts; ++i) {
    const TensorType& w = check_matrix(call, i);
    call.check(w.shape.dim(1) == x.shape.dim(1) && w.dtype == x.dtype, "{} does not match {}",
               call.describe(0), call.describe(i));
    Placements placements = linear_rules::match(call, 0, i,
                                                {{"R", "R", "R"},
                                                 {"S0", "R", "S0"},
                                                 {"R", "S0", "S1"},
                                                 {"S1", "S1", "P"},
                                                 {"P", "R", "P"}});
    if (has_bias(call)) check_bias(call, i, parts + i, placements);
    outputs.push_back({call.attrs.flag("f32_output") ? DType::kF32 : x.dtype,
                       Shape({x.shape.dim(0), w.shape.dim(0)}), std::move(placements)});
  }
  return outputs;
}

Cost cost(const OpCall& call) {
  const Shape x = call.input(0).local_shape(call.mesh);
  Cost cost;
  for (const TensorType* y : call.outputs) {
    const int64_t out = y->local_shape(call.mesh).dim(1);
    cost.flops += 2.0 * static_cast<double>(x.num_elements()) * static_cast<double>(out);
  }
  cost.bytes_read = linear_rules::bytes_read(call);
  cost.bytes_written = output_bytes(call);
  return cost;
}

Layout layout(const OpCall& call) {
  const int parts = static_cast<int>(call.attrs.integer("parts"));
  if (parts == 1) return {};
  Layout layout;
  layout.bundles.push_back({true, linear_rules::range(0, parts), 1, false});
  layout.bundles.push_back({false, linear_rules::range(1, parts), 0, false});
  if (has_bias(call)) layout.bundles.push_back({false, linear_rules::range(1 + parts, parts), 0});
  return layout;
}

// One derivative node for all parts that the loss depends on.
void backward(BackwardContext& context) {
  const int parts = static_cast<int>(context.node().attrs.integer("parts"));
  const bool bias = context.node().attrs.flag("bias");
  std::vector<int> weights, biases;
  std::vector<ValueId> dy, w, dy_of_weights, g, dy_of_biases, h;
  for (int i = 0; i < parts; ++i) {
    const ValueId grad = context.output_grad(i);
    if (grad == kNoValue) continue;
    dy.push_back(grad);
    w.push_back(context.input(1 + i));
    if (context.is_parameter(1 + i)) {
      weights.push_back(1 + i);
      dy_of_weights.push_back(grad);
      g.push_back(context.gradient_sum(1 + i, grad));
    } else if (context.needs_grad(1 + i)) {
      fail(ErrorCode::kUnsupported,
           "[linear] weight '{}' is computed: only a parameter or a constant can be a weight",
           context.graph().value(context.input(1 + i)).name);
    }
    if (bias && context.is_parameter(1 + parts + i)) {
      biases.push_back(1 + parts + i);
      dy_of_biases.push_back(grad);
      h.push_back(context.gradient_sum(1 + parts + i, grad));
    }
  }
  if (!weights.empty()) {
    const auto sums = linear_dw(context.graph(), dy_of_weights, context.input(0), g);
    for (size_t i = 0; i < sums.size(); ++i) context.set_gradient_sum(weights[i], sums[i]);
  }
  if (!biases.empty()) {
    const auto sums = linear_db(context.graph(), dy_of_biases, h);
    for (size_t i = 0; i < sums.size(); ++i) context.set_gradient_sum(biases[i], sums[i]);
  }
  if (!dy.empty() && context.needs_grad(0)) {
    context.add_input_grad(0, linear_dx(context.graph(), dy, w, context.name(0)));
  }
}

}  // namespace

const OpDef kLinear = {.name = "linear",
                       .infer = infer,
                       .cost = cost,
                       .backward = backward,
                       .layout = layout,
                       .passes_pending = true,
                       .can_use_fp8 = true};

std::vector<const OpDef*> linear_ops() {
  return {&kLinear, &kLinearDx, &kLinearDw, &kLinearDb, &kLinearDxDw, &kFp8Largest, &kRoundWeights};
}

std::vector<ValueId> linear(Graph& graph, ValueId x, const std::vector<ValueId>& weights,
                            const std::vector<ValueId>& biases,
                            const std::vector<std::string>& names, bool f32_output) {
  std::vector<ValueId> inputs = {x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  inputs.insert(inputs.end(), biases.begin(), biases.end());
  return graph.add(kLinear, std::move(inputs),
                   {{"parts", static_cast<int64_t>(weights.size())},
                    {"bias", !biases.empty()},
                    {"f32_output", f32_output}},
                   names);
}

}  // namespace skein
