#include "skein/ops/attention/attention.h"

#include <array>
#include <cmath>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/ops/zigzag/zigzag.h"

namespace skein {
namespace {

// The indices of q, k, v and attention_start among a node's inputs.
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
  for (const char* flag : {"documents", "repeatable"}) {
    if (call.attrs.has(flag)) call.attrs.flag(flag);
  }
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

// Axes that split the queries of a sequence; their ranks hold its keys and values whole.
struct ContextAxes {
  std::vector<int> axes;  // outermost first
  int64_t parts = 1;
};

bool is_context_axis(const Placements& q, const Placements& k, size_t axis) {
  return q[axis] == Placement::sharded(0) && k[axis].is_replicated();
}

ContextAxes context_axes(const Mesh& mesh, const Placements& q, const Placements& k) {
  ContextAxes context;
  for (size_t axis = 0; axis < q.size(); ++axis) {
    if (!is_context_axis(q, k, axis)) continue;
    context.axes.push_back(static_cast<int>(axis));
    context.parts *= mesh.axis(static_cast<int>(axis)).size;
  }
  return context;
}

void check_context(const OpCall& call, const Operands& at) {
  const int64_t sequence_length = call.attrs.integer("sequence_length");
  const Placements &q = call.input(at.q).placements, &k = call.input(at.k).placements;
  const ContextAxes context = context_axes(call.mesh, q, k);
  if (context.axes.empty()) return;
  for (int axis = context.axes[0]; axis < call.mesh.num_axes(); ++axis) {
    call.check(
        q[axis] != Placement::sharded(0) || is_context_axis(q, k, axis),
        "{} splits sequences over {} and whole sequences over {}, which is inside of it: the "
        "mesh should have them in the other order",
        call.describe(at.q), call.mesh.axis(context.axes[0]).name, call.mesh.axis(axis).name);
  }
  call.check(context.parts == 1 || sequence_length % (2 * context.parts) == 0,
             "sequence_length = {} should be a multiple of {}, two pieces for each of the {} ranks "
             "that share a sequence",
             sequence_length, 2 * context.parts, context.parts);
}

// Heads stay whole on every rank, and so do the sequences of k and v.
void check_local(const OpCall& call, const Operands& at) {
  const int64_t head_dim = call.attrs.integer("head_dim");
  const int64_t sequence_length = call.attrs.integer("sequence_length");
  const Shape q = call.input(at.q).local_shape(call.mesh);
  const Shape k = call.input(at.k).local_shape(call.mesh);
  call.check(k.dim(0) % sequence_length == 0,
             "{} gives a rank {} rows, not whole sequences of {} tokens", call.describe(at.k),
             k.dim(0), sequence_length);
  check_context(call, at);
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

// Sets which part of its sequences a rank holds, if it does not hold them whole.
void set_part(const OpCall& call, const Operands& at, int64_t rank, Attrs& attrs) {
  const ContextAxes context =
      context_axes(call.mesh, call.input(at.q).placements, call.input(at.k).placements);
  if (context.axes.empty()) return;
  const std::vector<int64_t> coordinates = call.mesh.coordinates(rank);
  int64_t part = 0;
  for (const int axis : context.axes) {
    part = part * call.mesh.axis(axis).size + coordinates[axis];
  }
  attrs.set("part", part);
  attrs.set("parts", context.parts);
}

void localize(const OpCall& call, int64_t rank, Attrs& attrs) {
  set_part(call, kForwardOperands, rank, attrs);
}
void localize_backward(const OpCall& call, int64_t rank, Attrs& attrs) {
  set_part(call, kBackwardOperands, rank, attrs);
}

std::vector<TensorType> infer(const OpCall& call) {
  check_operands(call, kForwardOperands);
  static constexpr std::array<std::string_view, 4> kRules = {
      "S0 S0 S0 S0 -> S0 S0", "S0 R R R -> S0 S0", "S1 S1 S1 R -> S1 S1", "S1 R R R -> S1 S1"};
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
  static constexpr std::array<std::string_view, 4> kRules = {
      "S0 S0 S0 S0 S0 S0 S0 -> S0 S0 S0", "S0 S0 R R S0 S0 R -> S0 P P",
      "S1 S1 S1 S1 S1 S1 R -> S1 S1 S1", "S1 S1 R R S1 S1 R -> S1 P P"};
  const auto placements = match_placements(call, {0, 1, 2, 3, 4, 5, 6}, 3, kRules);
  check_local(call, kBackwardOperands);
  return {{q.dtype, q.shape, placements[0]},
          {k.dtype, k.shape, placements[1]},
          {v.dtype, v.shape, placements[2]}};
}

// Pairs (i, j) that one rank computes, over its tokens and query heads: with zigzag order every
// part of a sequence has the same number.
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

// Gathers all rows of k or v, in natural order, from the parts that the ranks of `context` hold.
ValueId gather_sequences(Graph& graph, ValueId x, const ContextAxes& context,
                         int64_t sequence_length) {
  const std::string name = graph.value(x).name;
  // Inner axes split last, so their parts are joined first.
  for (auto axis = context.axes.rbegin(); axis != context.axes.rend(); ++axis) {
    x = redistribute(graph, x, graph.mesh().axis(*axis).name, Placement::replicated());
  }
  if (context.parts == 1) return x;
  return zigzag(graph, x, sequence_length, context.parts, true, name + ".sequences");
}

std::vector<ValueId> expand(Graph& graph, const Node& node, const std::vector<ValueId>& inputs,
                            const std::vector<std::string>& names) {
  const ValueId q = inputs.at(0), k = inputs.at(1), v = inputs.at(2), start = inputs.at(3);
  const ContextAxes context =
      context_axes(graph.mesh(), graph.type(q).placements, graph.type(start).placements);
  // If k and v are whole already, the placement rules apply.
  for (const int axis : context.axes) {
    if (graph.type(k).placements[axis].is_replicated()) return {};
  }
  if (context.axes.empty()) return {};
  const int64_t length = node.attrs.integer("sequence_length");
  const ValueId all_k = gather_sequences(graph, k, context, length);
  const ValueId all_v = gather_sequences(graph, v, context, length);
  return graph.add(kAttention, {q, all_k, all_v, start}, node.attrs, names);
}

}  // namespace

const OpDef kAttention = {.name = "attention",
                          .infer = infer,
                          .cost = cost,
                          .backward = backward,
                          .localize = localize,
                          .expand = expand};
const OpDef kAttentionBackward = {.name = "attention_backward",
                                  .infer = infer_backward,
                                  .cost = cost_backward,
                                  .localize = localize_backward};

std::vector<const OpDef*> attention_ops() { return {&kAttention, &kAttentionBackward}; }

AttentionResult attention(Graph& graph, ValueId q, ValueId k, ValueId v, ValueId attention_start,
                          const AttentionAttrs& attrs, const std::string& name) {
  Node node{.op = &kAttention,
            .attrs = {{"heads", attrs.heads},
                      {"kv_heads", attrs.kv_heads},
                      {"head_dim", attrs.head_dim},
                      {"sequence_length", attrs.sequence_length},
                      {"causal", attrs.causal},
                      {"scale", attrs.scale}}};
  if (!attrs.documents) node.attrs.set("documents", false);
  if (!attrs.repeatable) node.attrs.set("repeatable", false);
  const std::vector<ValueId> inputs = {q, k, v, attention_start};
  const std::vector<std::string> names = {name, name + "_lse"};
  std::vector<ValueId> outputs = expand(graph, node, inputs, names);
  if (outputs.empty()) outputs = graph.add(*node.op, inputs, node.attrs, names);
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
