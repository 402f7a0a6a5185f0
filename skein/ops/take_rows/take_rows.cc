#include "skein/ops/take_rows/take_rows.h"

#include <array>

#include "skein/ops/checks.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType &x = check_matrix(call, 0), &index = call.input(1);
  call.check(index.dtype == DType::kI32 && index.shape.rank() == 1, "{} must be i32[rows]",
             call.describe(1));
  call.check(x.shape.dim(0) > 0, "{} has no rows", call.describe(0));
  static constexpr std::array<std::string_view, 1> kRules = {"S1 R -> S1"};
  return {{x.dtype,
           {index.shape.dim(0), x.shape.dim(1)},
           match_placements(call, {0, 1}, 1, kRules)[0]}};
}

Cost cost(const OpCall& call) { return {0, output_bytes(call), output_bytes(call)}; }

}  // namespace

const OpDef kTakeRows = {.name = "take_rows", .infer = infer, .cost = cost};

std::vector<const OpDef*> take_rows_ops() { return {&kTakeRows}; }

ValueId take_rows(Graph& graph, ValueId x, ValueId index, const std::string& name) {
  return graph.add1(kTakeRows, {x, index}, {}, name);
}

}  // namespace skein
