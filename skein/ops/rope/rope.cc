#include "skein/ops/rope/rope.h"

#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"
#include "skein/ops/largest.h"

namespace skein {
namespace {

void check_heads(const OpCall& call, int index, int64_t head_dim) {
  const TensorType& type = check_matrix(call, index);
  call.check(type.shape.dim(1) % head_dim == 0, "{} is not made of heads of {}",
             call.describe(index), head_dim);
  const int64_t local = type.local_shape(call.mesh).dim(1);
  call.check(local % head_dim == 0, "{} gives a rank {} columns: a head of {} would be split",
             call.describe(index), local, head_dim);
}

std::vector<TensorType> infer(const OpCall& call) {
  const int64_t head_dim = call.attrs.integer("head_dim");
  call.attrs.flag("inverse");
  call.check(head_dim > 0 && head_dim % 2 == 0, "head_dim = {} should be even", head_dim);
  const TensorType &q = call.input(0), &k = call.input(1), &table = call.input(3);
  check_heads(call, 0, head_dim);
  check_heads(call, 1, head_dim);
  call.check(k.dtype == q.dtype && k.shape.dim(0) == q.shape.dim(0), "{} does not match {}",
             call.describe(1), call.describe(0));
  check_type(call, 2, DType::kI32, {q.shape.dim(0)});
  call.check(table.dtype == DType::kF32 && table.shape.rank() == 2 && table.shape.dim(0) > 0 &&
                 table.shape.dim(1) == head_dim,
             "{} should be f32[positions, {}]", call.describe(3), head_dim);
  // Key-value heads may be replicated; then their gradients are pending sums.
  static constexpr std::array<std::string_view, 4> kRules = {
      "S0 S0 S0 R -> S0 S0", "S1 S1 R R -> S1 S1", "S1 R R R -> S1 R", "S1 P R R -> S1 P"};
  const auto placements = match_placements(call, {0, 1, 2, 3}, 2, kRules);
  return with_largest(call, {{q.dtype, q.shape, placements[0]}, {k.dtype, k.shape, placements[1]}});
}

Cost cost(const OpCall& call) {
  const int64_t bytes = output_bytes(call);
  return {3.0 * static_cast<double>(bytes / size_of(call.output(0).dtype)), input_bytes(call),
          bytes};
}

void backward(BackwardContext& context) {
  const ValueId dq = context.output_grad(0), dk = context.output_grad(1);
  if (dq == kNoValue && dk == kNoValue) return;
  if (dq == kNoValue || dk == kNoValue) {
    fail(ErrorCode::kInternal, "[rope] only one of {} and {} reaches the loss",
         context.graph().value(context.output(0)).name,
         context.graph().value(context.output(1)).name);
  }
  const Attrs& attrs = context.node().attrs;
  const auto grads =
      rope(context.graph(), dq, dk, context.input(2), context.input(3), attrs.integer("head_dim"),
           context.name(0), context.name(1), !attrs.flag("inverse"));
  context.add_input_grad(0, grads.first);
  context.add_input_grad(1, grads.second);
}

Layout layout(const OpCall&) {
  return {.aliases = {{.output = 0, .input = 0}, {.output = 1, .input = 1}}};
}

}  // namespace

const OpDef kRope = {.name = "rope",
                     .infer = infer,
                     .cost = cost,
                     .backward = backward,
                     .layout = layout,
                     .passes_pending = true,
                     .largest_outputs = 2};

std::vector<const OpDef*> rope_ops() { return {&kRope}; }

std::pair<ValueId, ValueId> rope(Graph& graph, ValueId q, ValueId k, ValueId positions,
                                 ValueId rope_table, int64_t head_dim, const std::string& q_name,
                                 const std::string& k_name, bool inverse) {
  const auto outputs = graph.add(kRope, {q, k, positions, rope_table},
                                 {{"head_dim", head_dim}, {"inverse", inverse}}, {q_name, k_name});
  return {outputs[0], outputs[1]};
}

}  // namespace skein
