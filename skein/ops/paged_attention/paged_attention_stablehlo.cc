// Every token gathers the pages of its sequence, some 64 positions a turn, with a running softmax.
#include <algorithm>
#include <limits>

#include "skein/base/error.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

enum Operand { kQ, kK, kV, kKeys, kValues, kSequence, kPosition, kPages };

constexpr int64_t kTurnPositions = 64;
// The maximum of no scores: finite, so that padding produces no NaN.
constexpr double kNoMaximum = -1e30;

struct Sizes {
  int64_t tokens, kv_heads, group, head_dim;  // of this rank
  int64_t page_size, num_pages;
  int64_t columns;        // of the table of pages
  int64_t pages_of_turn;  // of each token

  explicit Sizes(const RuleCall& call) {
    const Tensor &q = call.inputs[kQ], &k = call.inputs[kK];
    tokens = q.dim(0);
    head_dim = call.constants().integer("head_dim");
    kv_heads = k.dim(1) / head_dim;
    group = q.dim(1) / k.dim(1);
    page_size = call.constants().integer("page_size");
    num_pages = call.inputs[kKeys].dim(0);
    columns = call.inputs[kPages].dim(1);
    pages_of_turn = std::min(columns, std::max<int64_t>(1, kTurnPositions / page_size));
  }
  int64_t turns() const { return (columns + pages_of_turn - 1) / pages_of_turn; }
};

// Of each token.
struct Places {
  Tensor is_token;  // i1[T]: no padding
  Tensor table;     // i32[T, columns]: the pages of its sequence
  Tensor slots;     // i32[T, 2]: the page, outside the cache for padding, and the place in it
};

Tensor are_in_range(const Tensor& numbers, int64_t end) {
  return compare(numbers, Compare::kGreaterEqual, 0) &
         compare(numbers, Compare::kLess, static_cast<double>(end));
}

Places places_of(const RuleCall& call, const Sizes& sizes) {
  const Tensor &sequence = call.inputs[kSequence], &position = call.inputs[kPosition];
  const Tensor &pages = call.inputs[kPages], table = take_rows(pages, sequence);
  const Tensor column = position / static_cast<double>(sizes.page_size);
  const Tensor place = position - column * static_cast<double>(sizes.page_size);

  const Tensor columns = call.to.iota(Element::kI32, table.dims(), 1);
  const Tensor of_token = as_columns(column, sizes.columns);
  const Tensor is_wrong =
      compare(columns, Compare::kLessEqual, of_token) & ~are_in_range(table, sizes.num_pages);
  const Tensor num_wrong = sum(convert(is_wrong, Element::kI32), {1});
  const Tensor is_token = are_in_range(sequence, pages.dim(0)) &
                          compare(position, Compare::kGreaterEqual, 0) &
                          compare(column, Compare::kLess, static_cast<double>(sizes.columns)) &
                          compare(num_wrong, Compare::kEqual, 0);

  const Tensor none = call.to.word(Element::kI32, 0);
  const Tensor page = sum(select(compare(columns, Compare::kEqual, of_token), table, none), {1});
  const Tensor outside = call.to.word(Element::kI32, static_cast<uint64_t>(sizes.num_pages));
  const Tensor slots = concatenate({reshape(select(is_token, page, outside), {sizes.tokens, 1}),
                                    reshape(place, {sizes.tokens, 1})},
                                   1);
  return {is_token, table, slots};
}

// cache[page, :, place, :] = rows[t] for each slot (page, place); one outside is left out. cache
// [N, a, P, b], rows [T, a, b].
Tensor stored(const Tensor& cache, const Tensor& slots, const Tensor& rows) {
  const std::string one = Type{cache.element(), {}}.to_string();
  const std::string type = cache.type().to_string();
  return cache.function().append_text(
      fmt::format("\"stablehlo.scatter\"({}, {}, {}) ({{ ^bb0(%x: {}, %y: {}): stablehlo.return %y "
                  ": {} }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = "
                  "[1, 2], inserted_window_dims = [0, 2], scatter_dims_to_operand_dims = [0, 2], "
                  "index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}} : "
                  "({}, {}, {}) -> {}",
                  cache.name(), slots.name(), rows.name(), one, one, one, type,
                  slots.type().to_string(), rows.type().to_string(), type),
      cache.type());
}

Tensor stored_keys(const RuleCall& call, const Sizes& sizes, const Tensor& slots) {
  const Tensor &keys = call.inputs[kKeys], &k = call.inputs[kK];
  const Tensor cache = reshape(keys, {sizes.num_pages, k.dim(1), sizes.page_size, 1});
  return reshape(stored(cache, slots, reshape(k, {sizes.tokens, k.dim(1), 1})), keys.dims());
}

Tensor stored_values(const RuleCall& call, const Sizes& sizes, const Tensor& slots) {
  const Tensor &values = call.inputs[kValues], &v = call.inputs[kV];
  const Tensor cache =
      reshape(values, {sizes.num_pages, sizes.kv_heads, sizes.page_size, sizes.head_dim});
  const Tensor rows = reshape(v, {sizes.tokens, sizes.kv_heads, sizes.head_dim});
  return reshape(stored(cache, slots, rows), values.dims());
}

// The values that a turn reads, [T, pages, kv_heads, P, D], with zeros where the token does not see
// them: those may be infinite.
Tensor seen_values(const Sizes& sizes, const Tensor& values, const Tensor& pages,
                   const Tensor& is_visible) {
  const Tensor all =
      reshape(to_f32(take_rows(values, pages)),
              {sizes.tokens, sizes.pages_of_turn, sizes.kv_heads, sizes.page_size, sizes.head_dim});
  const Tensor none = values.function().constant(Element::kF32, 0);
  return select(broadcast(is_visible, all.dims(), {0, 1, 3}), all, none);
}

// Relative to the largest score so far: sums of exp(score), and of exp(score) values. [T, kv_heads,
// group], and `weighted` [..., D].
struct Sums {
  Tensor largest, total, weighted;
};

// `scores` [T, kv_heads, group, pages, P].
Sums added(const Sums& before, const Tensor& scores, const Tensor& values) {
  const auto along = [](const Tensor& numbers, const Tensor& like) {
    return broadcast(numbers, like.dims(), {0, 1, 2});
  };
  const Tensor largest = maximum(before.largest, max(scores, {3, 4}));
  const Tensor shrink = exp(before.largest - largest);
  const Tensor weights = exp(scores - along(largest, scores));
  const Tensor product = dot(weights, values, {0, 1}, {0, 2}, {3, 4}, {1, 3});
  return {.largest = largest,
          .total = before.total * shrink + sum(weights, {3, 4}),
          .weighted = before.weighted * along(shrink, product) + product};
}

Sums attend(const RuleCall& call, const Sizes& sizes, const Places& places, const Tensor& keys,
            const Tensor& values) {
  const Dims rows = {sizes.tokens, sizes.kv_heads, sizes.group};
  const Dims of_turn = {sizes.tokens, sizes.pages_of_turn, sizes.page_size};
  const Tensor q = reshape(call.inputs[kQ], {rows[0], rows[1], rows[2], sizes.head_dim});
  const auto scale = static_cast<float>(call.constants().real("scale"));
  const Tensor table =
      pad_end(places.table, 1, sizes.turns() * sizes.pages_of_turn - sizes.columns);
  const Tensor lowest = call.to.constant(Element::kF32, -std::numeric_limits<double>::infinity());

  const auto turn = [&](const Tensor& number, const std::vector<Tensor>& carried) {
    const Tensor column = number * static_cast<double>(sizes.pages_of_turn);
    const Tensor pages = reshape(dynamic_slice(table, {call.to.word(Element::kI32, 0), column},
                                               {sizes.tokens, sizes.pages_of_turn}),
                                 {sizes.tokens * sizes.pages_of_turn});
    const Tensor position =
        (call.to.iota(Element::kI32, of_turn, 1) + column) * static_cast<double>(sizes.page_size) +
        call.to.iota(Element::kI32, of_turn, 2);
    const Tensor last = broadcast(call.inputs[kPosition], of_turn, {0});
    const Tensor is_visible = compare(position, Compare::kLessEqual, last);

    const Tensor k = reshape(
        take_rows(keys, pages),
        {sizes.tokens, sizes.pages_of_turn, sizes.kv_heads, sizes.head_dim, sizes.page_size});
    const Tensor all = dot(q, k, {0, 1}, {0, 2}, {3}, {3}) * scale;
    const Tensor scores = select(broadcast(is_visible, all.dims(), {0, 3, 4}), all, lowest);
    const Sums sums = added({carried[0], carried[1], carried[2]}, scores,
                            seen_values(sizes, values, pages, is_visible));
    return std::vector<Tensor>{sums.largest, sums.total, sums.weighted};
  };
  const std::vector<Tensor> sums = call.to.repeat(
      sizes.turns(),
      {call.to.constant(Element::kF32, kNoMaximum, rows), call.to.constant(Element::kF32, 0, rows),
       call.to.constant(Element::kF32, 0, q.dims())},
      turn);
  return {sums[0], sums[1], sums[2]};
}

std::vector<Tensor> forward(const RuleCall& call) {
  const Sizes sizes(call);
  const Places places = places_of(call, sizes);
  const Tensor keys = stored_keys(call, sizes, places.slots);
  const Tensor values = stored_values(call, sizes, places.slots);
  const Sums sums = attend(call, sizes, places, keys, values);
  const Tensor o = sums.weighted / broadcast(sums.total, sums.weighted.dims(), {0, 1, 2});
  const Tensor of_tokens =
      select(broadcast(places.is_token, o.dims(), {0}), o, call.to.constant(Element::kF32, 0));
  return {reshape(call.rounded(0, of_tokens), call.outputs[0].dims), keys, values};
}

}  // namespace

void add_paged_attention_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["paged_attention"] = forward;
}

}  // namespace skein
