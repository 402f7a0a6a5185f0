#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// The tokens as rows of this rank's part of the table; those of other ranks' rows lie outside.
Tensor local_rows(const RuleCall& call) {
  return call.inputs[0] - call.rank_integer("first_row", 0);
}

// x[t] = table[tokens[t]], or 0
std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor& table = call.inputs[1];
  const Tensor row = local_rows(call);
  const Tensor is_inside = compare(row, Compare::kGreaterEqual, 0) &
                           compare(row, Compare::kLess, static_cast<double>(table.dim(0)));
  return {select(as_columns(is_inside, table.dim(1)), take_rows(table, row),
                 call.to.constant(table.element(), 0))};
}

// sum[v] += sum over t with tokens[t] = v of dx[t]. A product with one-hot rows would do V times
// the work, and spread what is not finite over all rows.
std::vector<Tensor> backward(const RuleCall& call) {
  return {add_rows_at(call.inputs[2], local_rows(call), to_f32(call.inputs[1]))};
}

}  // namespace

void add_embedding_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["embedding"] = forward;
  rules["embedding_dw"] = backward;
}

}  // namespace skein
