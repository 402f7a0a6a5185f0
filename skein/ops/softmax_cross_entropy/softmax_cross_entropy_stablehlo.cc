#include <algorithm>
#include <limits>

#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

constexpr const char* kNumLogits = "num_logits";

// A rank's logits in fp32, -infinity in columns that only pad the vocabulary, and its labels as
// columns of them.
struct Rows {
  Tensor stored;   // the logits as they come
  Tensor x;        // [C, V]
  Tensor counts;   // i1[C, V]: columns that count; absent where all do
  Tensor label;    // i32[C]
  Tensor is_here;  // i1[C]: the label is one of the columns that count

  int64_t size() const { return x.dim(0); }
  int64_t cols() const { return x.dim(1); }
};

Tensor is_below(const Tensor& label, const Tensor& end) {
  return compare(label, Compare::kGreaterEqual, 0) & compare(label, Compare::kLess, end);
}

Rows rows_of(const RuleCall& call) {
  const Tensor& logits = call.inputs[0];
  Rows rows{.stored = logits, .x = to_f32(logits)};
  const int64_t cols = logits.dim(1);
  const Tensor num_logits = call.rank_integer(kNumLogits, cols);
  const bool all_count = std::all_of(call.attrs.begin(), call.attrs.end(), [&](const Attrs* one) {
    return !one->has(kNumLogits) || one->integer(kNumLogits) == cols;
  });
  if (!all_count) {
    const double infinity = std::numeric_limits<double>::infinity();
    rows.counts =
        compare(call.to.iota(Element::kI32, logits.dims(), 1), Compare::kLess, num_logits);
    rows.x = select(rows.counts, rows.x, call.to.constant(Element::kF32, -infinity));
  }
  rows.label = call.inputs[1] - call.rank_integer("first_logit", 0);
  rows.is_here = is_below(rows.label, num_logits);
  return rows;
}

// x[c, label[c]]; any number of the matrix if the label is outside.
Tensor label_logits(const Rows& rows) {
  const int64_t elements = rows.size() * rows.cols();
  const bool is_long = elements > std::numeric_limits<int32_t>::max();
  const Element integer = is_long ? Element::kI64 : Element::kI32;
  const Tensor begin =
      rows.x.function().iota(integer, {rows.size()}, 0) * static_cast<double>(rows.cols());
  return to_f32(take_rows(reshape(rows.stored, {elements}), begin + convert(rows.label, integer)));
}

// e^(x - most)
Tensor powers(const Rows& rows, const Tensor& most) {
  return exp(rows.x - as_columns(most, rows.cols()));
}

// loss = log(sum) - (label_logit - most), dlogits = e^(x - most) / sum - (v == label), both 0 in
// rows that have no label. `sum`: of the powers of all columns that count, on all ranks.
std::vector<Tensor> loss_and_gradient(const RuleCall& call, const Rows& rows, const Tensor& e,
                                      const Tensor& most, const Tensor& sum,
                                      const Tensor& label_logit, const Tensor& has_label) {
  const Tensor zero = call.to.constant(Element::kF32, 0);
  const Tensor loss = select(has_label, log(sum) - (label_logit - most), zero);
  const Tensor p = e / as_columns(sum, rows.cols());
  const Tensor column = call.to.iota(Element::kI32, rows.x.dims(), 1);
  const Tensor is_label = compare(column, Compare::kEqual, as_columns(rows.label, rows.cols()));
  const Tensor has_row = as_columns(has_label, rows.cols());
  const Tensor counts = rows.counts.present() ? has_row & rows.counts : has_row;
  return {loss, call.rounded(1, select(counts, select(is_label, p - 1.0, p), zero))};
}

std::vector<Tensor> forward(const RuleCall& call) {
  const Rows rows = rows_of(call);
  const Tensor most = max(rows.x, {1});
  const Tensor e = powers(rows, most);
  return loss_and_gradient(call, rows, e, most, sum(e, {1}), label_logits(rows), rows.is_here);
}

// ---- a split vocabulary ----

std::vector<Tensor> stats(const RuleCall& call) {
  const Rows rows = rows_of(call);
  const Tensor zero = call.to.constant(Element::kF32, 0);
  const Tensor most = max(rows.x, {1});
  // If all logits here are -infinity, those of another rank may not be.
  const Tensor has_none = compare(most, Compare::kEqual, -std::numeric_limits<double>::infinity());
  const Tensor of_powers = select(has_none, zero, sum(powers(rows, most), {1}));
  const Tensor label_logit = select(rows.is_here, label_logits(rows), zero);
  const Dims column = {rows.size(), 1};
  return {concatenate(
      {reshape(most, column), reshape(of_powers, column), reshape(label_logit, column)}, 1)};
}

// `stats` has each rank's of all rows, one rank after the other.
std::vector<Tensor> finish(const RuleCall& call) {
  const Rows rows = rows_of(call);
  const Tensor& all = call.inputs[2];
  const int64_t ranks = all.dim(0) / rows.size();
  const auto of_ranks = [&](int64_t index) {
    return reshape(slice_dim(all, 1, index, index + 1), {ranks, rows.size()});
  };
  const Tensor most_of_ranks = of_ranks(0), most = max(most_of_ranks, {0});
  const Tensor scale = exp(most_of_ranks - as_rows(most, ranks));
  const Tensor label_logit = sum(of_ranks(2), {0});  // 0 of all ranks but one
  const Tensor has_label = is_below(
      call.inputs[1], call.to.word(Element::kI32, static_cast<uint64_t>(ranks * rows.cols())));
  return loss_and_gradient(call, rows, powers(rows, most), most, sum(of_ranks(1) * scale, {0}),
                           label_logit, has_label);
}

}  // namespace

void add_softmax_cross_entropy_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["softmax_cross_entropy"] = forward;
  rules["softmax_stats"] = stats;
  rules["softmax_finish"] = finish;
}

}  // namespace skein
