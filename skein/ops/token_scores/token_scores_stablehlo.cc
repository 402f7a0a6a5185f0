#include <fmt/format.h>

#include <limits>

#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// Of each row of i32 numbers below `above` the least, or `above` if it has none.
Tensor least_of_rows(const Tensor& x, const Tensor& above) {
  const Type result{x.element(), {x.dim(0)}};
  return x.function().append_text(
      fmt::format("stablehlo.reduce({} init: {}) applies stablehlo.minimum across dimensions = [1] "
                  ": ({}, {}) -> {}",
                  x.name(), above.name(), x.type().to_string(), above.type().to_string(),
                  result.to_string()),
      result);
}

// The smallest column of each row where x is `most`; 0 if there is none (NaN).
Tensor first_equal(const Tensor& x, const Tensor& most) {
  Function& to = x.function();
  const int64_t cols = x.dim(1);
  const Tensor none = to.word(Element::kI32, static_cast<uint64_t>(cols));
  const Tensor columns = to.iota(Element::kI32, x.dims(), 1);
  const Tensor is_most = compare(x, Compare::kEqual, as_columns(most, cols));
  const Tensor first = least_of_rows(select(is_most, columns, none), none);
  return select(compare(first, Compare::kLess, none), first, to.word(Element::kI32, 0));
}

// x[t, label[t]]; any number of the matrix if the label is outside.
Tensor elements_at(const Tensor& x, const Tensor& label) {
  const int64_t rows = x.dim(0), cols = x.dim(1);
  const bool is_long = rows * cols > std::numeric_limits<int32_t>::max();
  const Element integer = is_long ? Element::kI64 : Element::kI32;
  const Tensor begin = x.function().iota(integer, {rows}, 0) * static_cast<double>(cols);
  return take_rows(reshape(x, {rows * cols}), begin + convert(label, integer));
}

std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor &x = call.inputs[0], &label = call.inputs[1];
  const int64_t cols = x.dim(1);
  const Tensor most = max(x, {1});
  const Tensor best_logprob = -log(sum(exp(x - as_columns(most, cols)), {1}));
  const Tensor has_label = compare(label, Compare::kGreaterEqual, 0) &
                           compare(label, Compare::kLess, static_cast<double>(cols));
  const Tensor logprob = select(has_label, elements_at(x, label) - most + best_logprob,
                                call.to.constant(Element::kF32, 0));
  return {logprob, first_equal(x, most), best_logprob};
}

}  // namespace

void add_token_scores_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["token_scores"] = forward;
}

}  // namespace skein
