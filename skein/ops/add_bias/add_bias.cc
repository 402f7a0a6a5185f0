#include "skein/ops/add_bias/add_bias.h"

#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"
#include "skein/ops/linear/linear.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType &x = check_matrix(call, 0), &b = call.input(1);
  const int64_t features = x.shape.dim(1);
  call.check(b.shape == Shape{features} && is_compute_dtype(b.dtype),
             "{} must be f32[{}] or bf16[{}]", call.describe(1), features, features);
  static constexpr std::array<std::string_view, 2> kRules = {"S0 R -> S0", "S1 S0 -> S1"};
  return {{x.dtype, x.shape, match_placements(call, {0, 1}, 1, kRules)[0]}};
}

Cost cost(const OpCall& call) {
  const int64_t bytes = output_bytes(call);
  return {static_cast<double>(bytes / size_of(call.output(0).dtype)), input_bytes(call), bytes};
}

void backward(BackwardContext& context) {
  const ValueId dy = context.output_grad(0);
  if (dy == kNoValue) return;
  if (context.needs_grad(0)) context.add_input_grad(0, dy);
  const ValueId sum = context.gradient_sum(1, dy);
  context.set_gradient_sum(1, linear_db(context.graph(), {dy}, {sum})[0]);
}

Layout layout(const OpCall&) { return {.aliases = {{.output = 0, .input = 0}}}; }

}  // namespace

const OpDef kAddBias = {
    .name = "add_bias", .infer = infer, .cost = cost, .backward = backward, .layout = layout};

std::vector<const OpDef*> add_bias_ops() { return {&kAddBias}; }

ValueId add_bias(Graph& graph, ValueId x, ValueId b, const std::string& name) {
  return graph.add1(kAddBias, {x, b}, {}, name);
}

}  // namespace skein
