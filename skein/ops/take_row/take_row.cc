#include "skein/ops/take_row/take_row.h"

#include <array>

#include "skein/ops/checks.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& x = check_matrix(call, 0);
  check_type(call, 1, DType::kI32, {1});
  call.check(x.shape.dim(0) > 0, "{} has no rows", call.describe(0));
  static constexpr std::array<std::string_view, 1> kRules = {"S1 R -> S1"};
  return {{x.dtype, Shape{1, x.shape.dim(1)}, match_placements(call, {0, 1}, 1, kRules)[0]}};
}

Cost cost(const OpCall& call) { return {0, output_bytes(call), output_bytes(call)}; }

}  // namespace

const OpDef kTakeRow = {.name = "take_row", .infer = infer, .cost = cost};

std::vector<const OpDef*> take_row_ops() { return {&kTakeRow}; }

ValueId take_row(Graph& graph, ValueId x, ValueId index, const std::string& name) {
  return graph.add1(kTakeRow, {x, index}, {}, name);
}

}  // namespace skein
