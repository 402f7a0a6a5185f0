#include "skein/ops/embedding/embedding.h"

#include <algorithm>
#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

void check_tokens(const OpCall& call) {
  const TensorType& tokens = call.input(0);
  call.check(tokens.dtype == DType::kI32 && tokens.shape.rank() == 1, "{} must be i32[tokens]",
             call.describe(0));
}

// Sets `first_row` on a rank whose table is split by rows.
void localize_rows(const OpCall& call, int table, int64_t rank, Attrs& attrs) {
  const TensorType& type = call.input(table);
  const bool split = std::find(type.placements.begin(), type.placements.end(),
                               Placement::sharded(0)) != type.placements.end();
  if (split) attrs.set("first_row", type.local_box(call.mesh, rank).offset[0]);
}

std::vector<TensorType> infer(const OpCall& call) {
  check_tokens(call);
  const TensorType& table = check_matrix(call, 1);
  static constexpr std::array<std::string_view, 3> kRules = {"S0 R -> S0", "R S1 -> S1",
                                                             "R S0 -> P"};
  return {{table.dtype, Shape{call.input(0).shape.dim(0), table.shape.dim(1)},
           match_placements(call, {0, 1}, 1, kRules)[0]}};
}

Cost cost(const OpCall& call) {
  const int64_t bytes = output_bytes(call);
  return {0, bytes + call.input(0).local_bytes(call.mesh), bytes};
}

void backward(BackwardContext& context) {
  const ValueId dx = context.output_grad(0);
  if (dx == kNoValue) return;
  context.set_gradient_sum(
      1, embedding_dw(context.graph(), context.input(0), dx, context.gradient_sum(1, dx)));
}

std::vector<TensorType> infer_dw(const OpCall& call) {
  check_tokens(call);
  const TensorType& dx = check_matrix(call, 1);
  const TensorType& sum = check_matrix(call, 2);
  call.check(dx.shape.dim(0) == call.input(0).shape.dim(0), "{} does not match {}",
             call.describe(1), call.describe(0));
  call.check(sum.dtype == DType::kF32 && sum.shape.dim(1) == dx.shape.dim(1),
             "{} must be f32 with the {} columns of {}", call.describe(2), dx.shape.dim(1),
             call.describe(1));
  static constexpr std::array<std::string_view, 3> kRules = {"S0 S0 P -> P", "R S1 S1 -> S1",
                                                             "R R S0 -> S0"};
  return {{sum.dtype, sum.shape, match_placements(call, {0, 1, 2}, 1, kRules)[0]}};
}

Cost cost_dw(const OpCall& call) {
  const int64_t tokens = call.input(0).local_bytes(call.mesh);
  const int64_t dx = call.input(1).local_bytes(call.mesh);
  const int64_t elements = dx / size_of(call.input(1).dtype);
  return {static_cast<double>(elements), tokens + dx + 4 * elements, 4 * elements};
}

void localize(const OpCall& call, int64_t rank, Attrs& attrs) {
  localize_rows(call, 1, rank, attrs);
}
void localize_dw(const OpCall& call, int64_t rank, Attrs& attrs) {
  localize_rows(call, 2, rank, attrs);
}

Layout layout_dw(const OpCall&) { return {.aliases = {{.output = 0, .input = 2}}}; }

}  // namespace

const OpDef kEmbedding = {
    .name = "embedding", .infer = infer, .cost = cost, .backward = backward, .localize = localize};
const OpDef kEmbeddingDw = {.name = "embedding_dw",
                            .infer = infer_dw,
                            .cost = cost_dw,
                            .layout = layout_dw,
                            .localize = localize_dw};

std::vector<const OpDef*> embedding_ops() { return {&kEmbedding, &kEmbeddingDw}; }

ValueId embedding(Graph& graph, ValueId tokens, ValueId table, const std::string& name) {
  return graph.add1(kEmbedding, {tokens, table}, {}, name);
}

ValueId embedding_dw(Graph& graph, ValueId tokens, ValueId dx, ValueId sum) {
  return graph.add1(kEmbeddingDw, {tokens, dx, sum}, {}, graph.value(sum).name);
}

}  // namespace skein
