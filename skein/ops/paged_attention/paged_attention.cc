#include "skein/ops/paged_attention/paged_attention.h"

#include <array>
#include <cmath>

#include "skein/ops/checks.h"

namespace skein {
namespace {

enum Operand { kQ, kK, kV, kKeys, kValues, kSequence, kPosition, kPages };

void check_attrs(const OpCall& call) {
  const int64_t heads = call.attrs.integer("heads"), kv_heads = call.attrs.integer("kv_heads");
  const int64_t head_dim = call.attrs.integer("head_dim");
  const int64_t page_size = call.attrs.integer("page_size");
  const double scale = call.attrs.real("scale");
  call.check(heads > 0 && kv_heads > 0 && heads % kv_heads == 0,
             "heads = {} should be a positive multiple of kv_heads = {}", heads, kv_heads);
  call.check(head_dim > 0, "head_dim = {} should be positive", head_dim);
  call.check(page_size > 0 && page_size % 16 == 0,
             "page_size = {} should be a positive multiple of 16", page_size);
  call.check(std::isfinite(scale) && scale > 0, "scale = {} should be positive", scale);
}

void check_operands(const OpCall& call) {
  check_attrs(call);
  const int64_t head_dim = call.attrs.integer("head_dim");
  const int64_t kv_cols = call.attrs.integer("kv_heads") * head_dim;
  const TensorType &q = check_matrix(call, kQ), &keys = check_matrix(call, kKeys);
  const int64_t tokens = q.shape.dim(0), num_pages = keys.shape.dim(0);
  const int64_t page_cols = kv_cols * call.attrs.integer("page_size");
  check_type(call, kQ, q.dtype, {tokens, call.attrs.integer("heads") * head_dim});
  check_type(call, kK, q.dtype, {tokens, kv_cols});
  check_type(call, kV, q.dtype, {tokens, kv_cols});
  check_type(call, kKeys, q.dtype, {num_pages, page_cols});
  check_type(call, kValues, q.dtype, {num_pages, page_cols});
  check_type(call, kSequence, DType::kI32, {tokens});
  check_type(call, kPosition, DType::kI32, {tokens});
  const TensorType& pages = call.input(kPages);
  call.check(pages.dtype == DType::kI32 && pages.shape.rank() == 2,
             "{} must be i32[sequences, pages of each]", call.describe(kPages));
}

// Heads stay whole on every rank, and its query heads are those of its key-value heads.
void check_local(const OpCall& call) {
  const int64_t head_dim = call.attrs.integer("head_dim");
  const int64_t q_cols = call.input(kQ).local_shape(call.mesh).dim(1);
  const int64_t k_cols = call.input(kK).local_shape(call.mesh).dim(1);
  call.check(q_cols % head_dim == 0 && k_cols % head_dim == 0,
             "{}, {} splits a head of {} over ranks", call.describe(kQ), call.describe(kK),
             head_dim);
  call.check(q_cols % k_cols == 0, "a rank's query heads {} are no multiple of its kv heads {}",
             q_cols / head_dim, k_cols / head_dim);
  const bool same_split =
      q_cols * call.input(kK).shape.dim(1) == k_cols * call.input(kQ).shape.dim(1);
  call.check(same_split || k_cols == head_dim,
             "{} is replicated under {}: a rank should hold one kv head, not {}", call.describe(kK),
             call.describe(kQ), k_cols / head_dim);
}

std::vector<TensorType> infer(const OpCall& call) {
  check_operands(call);
  static constexpr std::array<std::string_view, 2> kRules = {"S1 S1 S1 S1 S1 R R R -> S1 S1 S1",
                                                             "S1 R R R R R R R -> S1 R R"};
  const auto placements = match_placements(call, {0, 1, 2, 3, 4, 5, 6, 7}, 3, kRules);
  check_local(call);
  const TensorType &q = call.input(kQ), &keys = call.input(kKeys);
  return {{q.dtype, q.shape, placements[0]},
          {keys.dtype, keys.shape, placements[1]},
          {keys.dtype, keys.shape, placements[2]}};
}

// Of tokens in the middle of the longest sequences that the table holds. The pages of a sequence
// are read once.
Cost cost(const OpCall& call) {
  const Shape &pages = call.input(kPages).shape, q = call.input(kQ).local_shape(call.mesh);
  const int64_t context = pages.dim(1) * call.attrs.integer("page_size") / 2;
  const int64_t own = call.input(kK).local_bytes(call.mesh);  // of the keys that are stored
  const int64_t kv_bytes = call.input(kKeys).local_bytes(call.mesh);
  const int64_t position_bytes = call.input(kK).local_shape(call.mesh).dim(1) *
                                 static_cast<int64_t>(size_of(call.input(kK).dtype));
  const int64_t read = 2 * std::min(kv_bytes, pages.dim(0) * context * position_bytes);
  const int64_t tables =
      call.input(kPages).local_bytes(call.mesh) + 2 * call.input(kPosition).local_bytes(call.mesh);
  const int64_t q_bytes = call.input(kQ).local_bytes(call.mesh);
  return {4.0 * static_cast<double>(q.num_elements()) * static_cast<double>(context),
          q_bytes + 2 * own + read + tables, q_bytes + 2 * own};
}

Layout layout(const OpCall&) {
  return {.aliases = {{.output = 1, .input = kKeys}, {.output = 2, .input = kValues}}};
}

}  // namespace

const OpDef kPagedAttention = {
    .name = "paged_attention", .infer = infer, .cost = cost, .layout = layout};

std::vector<const OpDef*> paged_attention_ops() { return {&kPagedAttention}; }

Attrs PagedAttentionAttrs::to_attrs() const {
  return {{"heads", heads},
          {"kv_heads", kv_heads},
          {"head_dim", head_dim},
          {"page_size", page_size},
          {"scale", scale}};
}

PagedAttention paged_attention(Graph& graph, ValueId q, ValueId k, ValueId v, ValueId keys,
                               ValueId values, ValueId sequence, ValueId position, ValueId pages,
                               const PagedAttentionAttrs& attrs, const std::string& name) {
  const auto outputs =
      graph.add(kPagedAttention, {q, k, v, keys, values, sequence, position, pages},
                attrs.to_attrs(), {name, name + ".keys", name + ".values"});
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace skein
