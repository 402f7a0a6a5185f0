#include "skein/ops/attention/attention.h"

#include <array>
#include <cmath>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

// Where q, k, v and attention_start are among a node's inputs.
struct Operands {
  int q, k, v, start;
};
constexpr Operands kForwardOperands = {0, 1, 2, 3};
constexpr Operands kBackwardOperands = {1, 2, 3, 6};

int64_t local_heads(const OpCall& call, int operand) {
  return call.input(operand).local_shape(call.mesh).dim(1) / call.attrs.integer("head_dim");
}

void check_attrs(const OpCall& call) {
  const int64_t heads = call.attrs.integer("heads"), kv_heads = call.attrs.integer("kv_heads");
  const int64_t head_dim = call.attrs.integer("head_dim");
  const int64_t sequence_length = call.attrs.integer("sequence_length");
  const double scale = call.attrs.real("scale");
  call.attrs.flag("causal");
  call.check(heads > 0 && kv_heads > 0 && heads % kv_heads == 0,
             "heads = {} should be a positive multiple of kv_heads = {}", heads, kv_heads);
  call.check(head_dim > 0, "head_dim = {} should be positive", head_dim);
  call.check(sequence_length > 0 && sequence_length <= INT32_MAX,
             "sequence_length = {} should be positive and fit 32 bits", sequence_length);
  call.check(std::isfinite(scale) && scale > 0, "scale = {} should be positive", scale);
}

void check_operands(const OpCall& call, const Operands& at) {
  check_attrs(call);
  const int64_t head_dim = call.attrs.integer("head_dim");
  const int64_t q_cols = call.attrs.integer("heads") * head_dim;
  const int64_t kv_cols = call.attrs.integer("kv_heads") * head_dim;
  const TensorType& q = check_matrix(call, at.q);
  const int64_t tokens = q.shape.dim(0);
  check_type(call, at.q, q.dtype, {tokens, q_cols});
  check_type(call, at.k, q.dtype, {tokens, kv_cols});
  check_type(call, at.v, q.dtype, {tokens, kv_cols});
  check_type(call, at.start, DType::kI32, {tokens});
}

// Heads and sequences stay whole on every rank.
void check_local(const OpCall& call, const Operands& at) {
  const int64_t head_dim = call.attrs.integer("head_dim");
  const int64_t sequence_length = call.attrs.integer("sequence_length");
  const Shape q = call.input(at.q).local_shape(call.mesh);
  const Shape k = call.input(at.k).local_shape(call.mesh);
  call.check(q.dim(0) % sequence_length == 0,
             "{} gives a rank {} rows, not whole sequences of {} tokens", call.describe(at.q),
             q.dim(0), sequence_length);
  call.check(q.dim(1) % head_dim == 0 && k.dim(1) % head_dim == 0,
             "{}, {} splits a head of {} over ranks", call.describe(at.q), call.describe(at.k),
             head_dim);
  call.check(q.dim(1) % k.dim(1) == 0, "a rank's query heads {} are no multiple of its kv heads {}",
             q.dim(1) / head_dim, k.dim(1) / head_dim);
  const bool same_split =
      q.dim(1) * call.input(at.k).shape.dim(1) == k.dim(1) * call.input(at.q).shape.dim(1);
  call.check(same_split || k.dim(1) == head_dim,
             "{} is replicated under {}: a rank should hold one kv head, not {}",
             call.describe(at.k), call.describe(at.q), k.dim(1) / head_dim);
}

std::vector<TensorType> infer(const OpCall& call) {
  check_operands(call, kForwardOperands);
  static constexpr std::array<std::string_view, 3> kRules = {
      "S0 S0 S0 S0 -> S0 S0", "S1 S1 S1 R -> S1 S1", "S1 R R R -> S1 S1"};
  const auto placements = match_placements(call, {0, 1, 2, 3}, 2, kRules);
  check_local(call, kForwardOperands);
  const TensorType& q = call.input(0);
  return {{q.dtype, q.shape, placements[0]},
          {DType::kF32, {q.shape.dim(0), call.attrs.integer("heads")}, placements[1]}};
}

std::vector<TensorType> infer_backward(const OpCall& call) {
  check_operands(call, kBackwardOperands);
  const TensorType &q = call.input(1), &k = call.input(2), &v = call.input(3);
  check_same(call, 0, 1);
  check_same(call, 4, 1);
  check_type(call, 5, DType::kF32, {q.shape.dim(0), call.attrs.integer("heads")});
  static constexpr std::array<std::string_view, 3> kRules = {"S0 S0 S0 S0 S0 S0 S0 -> S0 S0 S0",
                                                             "S1 S1 S1 S1 S1 S1 R -> S1 S1 S1",
                                                             "S1 S1 R R S1 S1 R -> S1 P P"};
  const auto placements = match_placements(call, {0, 1, 2, 3, 4, 5, 6}, 3, kRules);
  check_local(call, kBackwardOperands);
  return {{q.dtype, q.shape, placements[0]},
          {k.dtype, k.shape, placements[1]},
          {v.dtype, v.shape, placements[2]}};
}

// Pairs (i, j) that one rank computes, over its sequences and query heads.
double num_pairs(const OpCall& call, const Operands& at) {
  const auto length = static_cast<double>(call.attrs.integer("sequence_length"));
  const auto tokens = static_cast<double>(call.input(at.q).local_shape(call.mesh).dim(0));
  const double row = call.attrs.flag("causal") ? (length + 1) / 2 : length;
  return tokens * row * static_cast<double>(local_heads(call, at.q));
}

Cost cost_of(const OpCall& call, const Operands& at, double flops_per_pair_dim) {
  const auto head_dim = static_cast<double>(call.attrs.integer("head_dim"));
  return {flops_per_pair_dim * head_dim * num_pairs(call, at), input_bytes(call),
          output_bytes(call)};
}

Cost cost(const OpCall& call) { return cost_of(call, kForwardOperands, 4); }
Cost cost_backward(const OpCall& call) { return cost_of(call, kBackwardOperands, 10); }

void backward(BackwardContext& context) {
  const ValueId grad = context.output_grad(0);
  if (context.output_grad(1) != kNoValue) {
    fail(ErrorCode::kInternal, "[attention] lse of {} has no derivative",
         context.graph().value(context.output(0)).name);
  }
  if (grad == kNoValue) return;
  const AttentionGrads grads =
      attention_backward(context.graph(), grad, context.input(0), context.input(1),
                         context.input(2), {context.output(0), context.output(1)}, context.input(3),
                         context.node().attrs, {context.name(0), context.name(1), context.name(2)});
  context.add_input_grad(0, grads.dq);
  context.add_input_grad(1, grads.dk);
  context.add_input_grad(2, grads.dv);
}

}  // namespace

const OpDef kAttention = {.name = "attention", .infer = infer, .cost = cost, .backward = backward};
const OpDef kAttentionBackward = {
    .name = "attention_backward", .infer = infer_backward, .cost = cost_backward};

std::vector<const OpDef*> attention_ops() { return {&kAttention, &kAttentionBackward}; }

AttentionResult attention(Graph& graph, ValueId q, ValueId k, ValueId v, ValueId attention_start,
                          const AttentionAttrs& attrs, const std::string& name) {
  const auto outputs = graph.add(kAttention, {q, k, v, attention_start},
                                 {{"heads", attrs.heads},
                                  {"kv_heads", attrs.kv_heads},
                                  {"head_dim", attrs.head_dim},
                                  {"sequence_length", attrs.sequence_length},
                                  {"causal", attrs.causal},
                                  {"scale", attrs.scale}},
                                 {name, name + "_lse"});
  return {outputs[0], outputs[1]};
}

AttentionGrads attention_backward(Graph& graph, ValueId grad, ValueId q, ValueId k, ValueId v,
                                  const AttentionResult& forward, ValueId attention_start,
                                  const Attrs& attrs, const std::vector<std::string>& names) {
  const auto outputs = graph.add(
      kAttentionBackward, {grad, q, k, v, forward.o, forward.lse, attention_start}, attrs, names);
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace skein
