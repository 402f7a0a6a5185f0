// Attention in blocks, in one loop whose turns are the pairs of a block of queries and a block of
// keys. With a causal mask, blocks of keys behind the queries have no turn.
//
// Layout  q, o, do  [blocks, sequences, kv_heads, group * size, head_dim]
//         k, v      [blocks, sequences, kv_heads, size, head_dim]
//         The query heads of a group are rows of one product, so that nothing of k and v is copied
// Order   All turns of a block of queries come one after the other. Blocks of queries go in pairs,
//         number a with number a from the end: with a causal mask a pair has one turn more than
//         there are blocks of keys, wherever it lies. That holds for a rank's part in zigzag order,
//         too: its two spans lie equally far from the ends of the sequence
#include <limits>
#include <utility>

#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// The maximum of no scores: finite, so that a query that has seen no key yet does not produce a
// NaN.
constexpr double kNoMaximum = -1e30;
// Of the places behind the end of a span; no token has it.
constexpr double kNoStart = -1;

// Divides the span if a size between half of the most and the most does.
int64_t block_size(int64_t span, int64_t sequence_length) {
  const int64_t most = sequence_length <= 2048 ? 256 : 512;
  if (span <= most) return span;
  for (int64_t size = most; size >= most / 2; --size) {
    if (span % size == 0) return size;
  }
  const int64_t blocks = (span + most - 1) / most;
  return (span + blocks - 1) / blocks;
}

struct Problem {
  Problem(const RuleCall& call, const Tensor& q, const Tensor& k, const Tensor& start);

  Function& to;
  int64_t sequences, kv_heads, group, head_dim;
  int64_t parts;        // of a sequence's queries, each on its own rank
  int64_t span;         // adjacent positions: a sequence, or with parts one of its pieces
  int64_t size;         // positions of a block
  int64_t span_blocks;  // the last one may end with places that no token has
  bool causal;
  float scale;
  Tensor part;    // i32[]
  Tensor starts;  // i32[key_blocks, sequences, size]; absent: all have the same

  int64_t query_blocks() const { return (parts == 1 ? 1 : 2) * span_blocks; }
  int64_t key_blocks() const { return (parts == 1 ? 1 : 2 * parts) * span_blocks; }
  int64_t turns_of_pair() const { return causal ? key_blocks() + 1 : 2 * key_blocks(); }
  int64_t turns() const { return query_blocks() * turns_of_pair() / 2; }

  std::vector<Tensor> repeat(const std::vector<Tensor>& carried, const Function::Turn& turn) const {
    return turns() == 1 ? turn(to.word(Element::kI32, 0), carried)
                        : to.repeat(turns(), carried, turn);
  }
};

Problem::Problem(const RuleCall& call, const Tensor& q, const Tensor& k, const Tensor& start)
    : to(call.to) {
  const Attrs& attrs = call.constants();
  const int64_t length = attrs.integer("sequence_length");
  sequences = k.dim(0) / length;
  head_dim = attrs.integer("head_dim");
  kv_heads = k.dim(1) / head_dim;
  group = q.dim(1) / k.dim(1);
  parts = attrs.has("parts") ? attrs.integer("parts") : 1;
  span = parts == 1 ? length : length / (2 * parts);
  size = block_size(span, length);
  span_blocks = (span + size - 1) / size;
  causal = attrs.flag("causal");
  scale = static_cast<float>(attrs.real("scale"));
  if (parts > 1) part = call.rank_integer("part", 0);
  const bool documents = !attrs.has("documents") || attrs.flag("documents");
  if (!documents && span_blocks * size == span) return;
  const Tensor spans = reshape(start, {k.dim(0) / span, span});
  const Tensor padded = pad_end(spans, 1, span_blocks * size - span, kNoStart);
  starts = transpose(reshape(padded, {sequences, key_blocks(), size}), {1, 0, 2});
}

// x [rows, kv_heads * group * d] as [blocks, sequences, kv_heads, group * size, d].
Tensor to_blocks(const Problem& p, const Tensor& x, int64_t group) {
  const int64_t num_spans = x.dim(0) / p.span, blocks = num_spans * p.span_blocks / p.sequences;
  const int64_t d = x.dim(1) / (p.kv_heads * group);
  const Tensor spans = reshape(x, {num_spans, p.span, x.dim(1)});
  const Tensor padded = pad_end(spans, 1, p.span_blocks * p.size - p.span);
  const Tensor in_heads = reshape(padded, {p.sequences, blocks, p.size, p.kv_heads, group, d});
  return reshape(transpose(in_heads, {1, 0, 3, 4, 2, 5}),
                 {blocks, p.sequences, p.kv_heads, group * p.size, d});
}

// The inverse.
Tensor from_blocks(const Problem& p, const Tensor& x, int64_t group) {
  const int64_t blocks = x.dim(0), d = x.dim(4), cols = p.kv_heads * group * d;
  const int64_t num_spans = p.sequences * blocks / p.span_blocks;
  const Tensor in_heads = reshape(x, {blocks, p.sequences, p.kv_heads, group, p.size, d});
  const Tensor padded =
      reshape(transpose(in_heads, {1, 0, 4, 2, 3, 5}), {num_spans, p.span_blocks * p.size, cols});
  return reshape(slice_dim(padded, 1, 0, p.span), {num_spans * p.span, cols});
}

// A number for each query and head, [rows, heads], as [blocks, sequences, kv_heads, group * size].
Tensor statistics_to_blocks(const Problem& p, const Tensor& x) {
  const Tensor blocks = to_blocks(p, x, p.group);
  return reshape(blocks, {blocks.dim(0), blocks.dim(1), blocks.dim(2), blocks.dim(3)});
}

Tensor statistics_from_blocks(const Problem& p, const Tensor& x) {
  return from_blocks(p, reshape(x, {x.dim(0), x.dim(1), x.dim(2), x.dim(3), 1}), p.group);
}

std::vector<Tensor> place_of(const Tensor& blocks, const Tensor& index) {
  std::vector<Tensor> at(blocks.rank(), blocks.function().word(Element::kI32, 0));
  at[0] = index;
  return at;
}

Tensor block_at(const Tensor& blocks, const Tensor& index) {
  Dims sizes = blocks.dims();
  sizes[0] = 1;
  return reshape(dynamic_slice(blocks, place_of(blocks, index), sizes),
                 Dims(sizes.begin() + 1, sizes.end()));
}

Tensor with_block(const Tensor& blocks, const Tensor& index, const Tensor& block) {
  Dims sizes = blocks.dims();
  sizes[0] = 1;
  return dynamic_update(blocks, reshape(block, sizes), place_of(blocks, index));
}

// What meets in a turn, i32[].
struct Pair {
  Tensor query, key;  // blocks
  Tensor position;    // of the queries: the block of keys at the same positions
  Tensor is_first;    // i1[]: of the turns of these queries
};

Pair pair_of(const Problem& p, const Tensor& turn) {
  const auto per_pair = static_cast<double>(p.turns_of_pair());
  const Tensor low = turn / per_pair, step = turn - low * per_pair;
  const Tensor low_position =
      p.parts == 1 ? low : low + p.part * static_cast<double>(p.span_blocks);
  const auto mirrored = [](int64_t blocks, const Tensor& index) {
    return static_cast<double>(blocks - 1) - index;
  };
  const Tensor low_turns = p.causal ? low_position + 1 : p.to.word(Element::kI32, p.key_blocks());
  const Tensor is_low = compare(step, Compare::kLess, low_turns);
  const Tensor key = select(is_low, step, step - low_turns);
  return {.query = select(is_low, low, mirrored(p.query_blocks(), low)),
          .key = key,
          .position = select(is_low, low_position, mirrored(p.key_blocks(), low_position)),
          .is_first = compare(key, Compare::kEqual, 0)};
}

// visible(i, j) of the queries and keys of a pair, i1[sequences or 1, size, size]; absent where all
// are visible.
Tensor visible(const Problem& p, const Pair& pair) {
  Tensor all;
  if (p.causal) {
    const Dims dims = {1, p.size, p.size};
    const Tensor distance = p.to.iota(Element::kI32, dims, 1) - p.to.iota(Element::kI32, dims, 2);
    const Tensor of_blocks = (pair.key - pair.position) * static_cast<double>(p.size);
    all = compare(distance, Compare::kGreaterEqual, of_blocks);
  }
  if (!p.starts.present()) return all;
  const Dims dims = {p.sequences, p.size, p.size};
  const Tensor of_queries = broadcast(block_at(p.starts, pair.position), dims, {0, 1});
  const Tensor of_keys = broadcast(block_at(p.starts, pair.key), dims, {0, 2});
  const Tensor same = compare(of_queries, Compare::kEqual, of_keys);
  return all.present() ? same & broadcast(all, dims, {0, 1, 2}) : same;
}

// scale * q . k, [sequences, kv_heads, group * size, size]; -inf where a key is not visible.
Tensor scores(const Problem& p, const Pair& pair, const Tensor& q, const Tensor& k) {
  const Tensor all = dot(q, k, {0, 1}, {0, 1}, {3}, {3}) * p.scale;
  const Tensor is_visible = visible(p, pair);
  if (!is_visible.present()) return all;
  const Tensor of_heads =
      broadcast(is_visible, {p.sequences, p.kv_heads, p.group, p.size, p.size}, {0, 3, 4});
  return select(reshape(of_heads, all.dims()), all,
                p.to.constant(Element::kF32, -std::numeric_limits<double>::infinity()));
}

// A row's number in the row's every element.
Tensor along_rows(const Tensor& numbers, const Tensor& like) {
  return broadcast(numbers, like.dims(), {0, 1, 2});
}

Tensor filled(const Tensor& like, double value) {
  return like.function().constant(like.element(), value, like.dims());
}

// Of a block of queries: the largest score so far, and relative to it the sums of exp(score) and
// of exp(score) v.
struct Sums {
  Tensor largest, total, weighted;
};

Sums added(const Sums& before, const Tensor& s, const Tensor& v) {
  const Tensor largest = maximum(before.largest, max(s, {3}));
  const Tensor shrink = exp(before.largest - largest);
  const Tensor p = exp(s - along_rows(largest, s));
  const Tensor product = dot(convert(p, v.element()), v, {0, 1}, {0, 1}, {3}, {2});
  return {.largest = largest,
          .total = before.total * shrink + sum(p, {3}),
          .weighted = before.weighted * along_rows(shrink, product) + product};
}

std::vector<Tensor> forward(const RuleCall& call) {
  const Problem p(call, call.inputs[0], call.inputs[1], call.inputs[3]);
  const Tensor q = to_blocks(p, call.inputs[0], p.group);
  const Tensor k = to_blocks(p, call.inputs[1], 1), v = to_blocks(p, call.inputs[2], 1);
  const Dims rows = {p.sequences, p.kv_heads, p.group * p.size};
  const auto zeros = [&](Dims dims) { return call.to.constant(Element::kF32, 0, std::move(dims)); };

  const auto turn = [&](const Tensor& number, const std::vector<Tensor>& carried) {
    const Pair pair = pair_of(p, number);
    const auto begun = [&](const Tensor& sums, double value) {
      return select(pair.is_first, filled(sums, value), sums);
    };
    const Sums before = {begun(carried[2], kNoMaximum), begun(carried[3], 0), begun(carried[4], 0)};
    const Tensor s = scores(p, pair, block_at(q, pair.query), block_at(k, pair.key));
    const Sums sums = added(before, s, block_at(v, pair.key));
    // What the last turn of these queries writes stays.
    const Tensor o = sums.weighted / along_rows(sums.total, sums.weighted);
    const Tensor lse = sums.largest + log(sums.total);
    return std::vector<Tensor>{with_block(carried[0], pair.query, call.rounded(0, o)),
                               with_block(carried[1], pair.query, lse), sums.largest, sums.total,
                               sums.weighted};
  };
  const Tensor weighted = zeros({rows[0], rows[1], rows[2], p.head_dim});
  const std::vector<Tensor> outputs =
      p.repeat({filled(q, 0), zeros({p.query_blocks(), rows[0], rows[1], rows[2]}), zeros(rows),
                zeros(rows), weighted},
               turn);
  return {from_blocks(p, outputs[0], p.group), statistics_from_blocks(p, outputs[1])};
}

// The terms of a pair, dq and dk without the scale.
struct Terms {
  Tensor dq, dk, dv;
};

struct Queries {
  Tensor q, grad, lse, delta;
};

Terms terms_of(const Problem& p, const Pair& pair, const Queries& of, const Tensor& k,
               const Tensor& v) {
  const Tensor s = scores(p, pair, of.q, k);
  const Tensor probability = exp(s - along_rows(of.lse, s));
  const Tensor dp = dot(of.grad, v, {0, 1}, {0, 1}, {3}, {3});
  const Tensor ds = convert(probability * (dp - along_rows(of.delta, s)), k.element());
  return {.dq = dot(ds, k, {0, 1}, {0, 1}, {3}, {2}),
          .dk = dot(ds, of.q, {0, 1}, {0, 1}, {2}, {2}),
          .dv = dot(convert(probability, k.element()), of.grad, {0, 1}, {0, 1}, {2}, {2})};
}

// do . o of each query and head, [rows, heads].
Tensor delta_of(const Problem& p, const Tensor& grad, const Tensor& o) {
  const Tensor products = to_f32(grad) * to_f32(o);
  const int64_t heads = p.kv_heads * p.group;
  return sum(reshape(products, {products.dim(0), heads, p.head_dim}), {2});
}

std::vector<Tensor> backward(const RuleCall& call) {
  const Problem p(call, call.inputs[1], call.inputs[2], call.inputs[6]);
  const Queries all = {
      .q = to_blocks(p, call.inputs[1], p.group),
      .grad = to_blocks(p, call.inputs[0], p.group),
      .lse = statistics_to_blocks(p, call.inputs[5]),
      .delta = statistics_to_blocks(p, delta_of(p, call.inputs[0], call.inputs[4]))};
  const Tensor k = to_blocks(p, call.inputs[2], 1), v = to_blocks(p, call.inputs[3], 1);

  const auto turn = [&](const Tensor& number, const std::vector<Tensor>& carried) {
    const Pair pair = pair_of(p, number);
    const Queries of = {block_at(all.q, pair.query), block_at(all.grad, pair.query),
                        block_at(all.lse, pair.query), block_at(all.delta, pair.query)};
    const Terms terms = terms_of(p, pair, of, block_at(k, pair.key), block_at(v, pair.key));
    const auto with_term = [&](const Tensor& blocks, const Tensor& term) {
      return with_block(blocks, pair.key, block_at(blocks, pair.key) + term);
    };
    const Tensor dq = select(pair.is_first, filled(carried[3], 0), carried[3]) + terms.dq;
    // What the last turn of these queries writes stays.
    return std::vector<Tensor>{with_block(carried[0], pair.query, call.rounded(0, dq * p.scale)),
                               with_term(carried[1], terms.dk), with_term(carried[2], terms.dv),
                               dq};
  };
  const Tensor no_sums = call.to.constant(Element::kF32, 0, k.dims());
  const Tensor no_dq =
      call.to.constant(Element::kF32, 0, {p.sequences, p.kv_heads, p.group * p.size, p.head_dim});
  const std::vector<Tensor> sums = p.repeat({filled(all.q, 0), no_sums, no_sums, no_dq}, turn);
  return {from_blocks(p, sums[0], p.group), from_blocks(p, call.rounded(1, sums[1] * p.scale), 1),
          from_blocks(p, call.rounded(2, sums[2]), 1)};
}

}  // namespace

void add_attention_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["attention"] = forward;
  rules["attention_backward"] = backward;
}

}  // namespace skein
