#include "skein/ops/softmax_cross_entropy/softmax_cross_entropy.h"

#include <algorithm>
#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"
#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

constexpr const char* kVocabulary = "vocabulary";
constexpr const char* kNumLogits = "num_logits";

DType gradient_dtype(const OpCall& call) {
  const std::string& name = call.attrs.text("gradient_dtype");
  const std::optional<DType> dtype = parse_dtype(name);
  call.check(dtype.has_value() && is_compute_dtype(*dtype),
             "gradient_dtype is '{}': expected \"f32\" or \"bf16\"", name);
  return *dtype;
}

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& logits = check_matrix(call, 0);
  const int64_t rows = logits.shape.dim(0);
  check_type(call, 1, DType::kI32, {rows});
  static constexpr std::array<std::string_view, 1> kRules = {"S0 S0 -> S0 S0"};
  const auto placements = match_placements(call, {0, 1}, 2, kRules);
  return {{DType::kF32, Shape{rows}, placements[0]},
          {gradient_dtype(call), logits.shape, placements[1]}};
}

double num_logits(const OpCall& call) {
  return static_cast<double>(call.input(0).local_shape(call.mesh).num_elements());
}

Cost cost(const OpCall& call) {
  return {30 * num_logits(call), input_bytes(call), output_bytes(call)};
}

Layout layout(const OpCall& call) {
  if (gradient_dtype(call) != call.input(0).dtype) return {};
  return {.aliases = {{.output = 1, .input = 0}}};
}

void backward(BackwardContext& context) {
  const ValueId grad = context.output_grad(0);
  if (context.output_grad(1) != kNoValue || (grad != kNoValue && grad != kUnitGrad)) {
    fail(ErrorCode::kInvalid, "[{}] '{}' may only be summed into the loss", context.node().op->name,
         context.graph().value(context.output(0)).name);
  }
  if (grad == kUnitGrad) context.add_input_grad(0, context.output(1));
}

// The axes that split the vocabulary, outermost first.
std::vector<int> vocabulary_axes(const TensorType& logits) {
  std::vector<int> axes;
  for (size_t axis = 0; axis < logits.placements.size(); ++axis) {
    if (logits.placements[axis] == Placement::sharded(1)) axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

// Checks logits and labels; returns the number of ranks that share a row.
int64_t check_split(const OpCall& call) {
  const TensorType& logits = check_matrix(call, 0);
  check_type(call, 1, DType::kI32, {logits.shape.dim(0)});
  const std::vector<int> axes = vocabulary_axes(logits);
  int64_t ranks = 1;
  for (const int axis : axes) ranks *= call.mesh.axis(axis).size;
  for (int axis = axes.empty() ? call.mesh.num_axes() : axes[0]; axis < call.mesh.num_axes();
       ++axis) {
    call.check(logits.placements[axis] != Placement::sharded(0),
               "{} splits the vocabulary over {} and rows over {}, which is inside of it: the mesh "
               "should have them in the other order",
               call.describe(0), call.mesh.axis(axes[0]).name, call.mesh.axis(axis).name);
  }
  return ranks;
}

std::vector<TensorType> infer_stats(const OpCall& call) {
  const int64_t ranks = check_split(call);
  static constexpr std::array<std::string_view, 2> kRules = {"S0 S0 -> S0", "S1 R -> S0"};
  return {{DType::kF32, Shape{call.input(0).shape.dim(0) * ranks, 3},
           match_placements(call, {0, 1}, 1, kRules)[0]}};
}

Cost cost_stats(const OpCall& call) {
  return {15 * num_logits(call), input_bytes(call), output_bytes(call)};
}

std::vector<TensorType> infer_finish(const OpCall& call) {
  const int64_t ranks = check_split(call), rows = call.input(0).shape.dim(0);
  check_type(call, 2, DType::kF32, {rows * ranks, 3});
  static constexpr std::array<std::string_view, 2> kRules = {"S0 S0 S0 -> S0 S0", "S1 R R -> R S1"};
  const auto placements = match_placements(call, {0, 1, 2}, 2, kRules);
  return {{DType::kF32, Shape{rows}, placements[0]},
          {gradient_dtype(call), call.input(0).shape, placements[1]}};
}

Cost cost_finish(const OpCall& call) {
  return {15 * num_logits(call), input_bytes(call), output_bytes(call)};
}

void localize(const OpCall& call, int64_t rank, Attrs& attrs) {
  const Box box = call.input(0).local_box(call.mesh, rank);
  attrs.set("first_logit", box.offset[1]);
  if (!attrs.has(kVocabulary)) return;
  const int64_t rest = attrs.integer(kVocabulary) - box.offset[1];
  attrs.set(kNumLogits, std::clamp<int64_t>(rest, 0, box.shape.dim(1)));
}

void localize_whole(const OpCall& call, int64_t rank, Attrs& attrs) {
  if (attrs.has(kVocabulary)) localize(call, rank, attrs);
}

std::vector<ValueId> expand(Graph& graph, const Node& node, const std::vector<ValueId>& inputs,
                            const std::vector<std::string>& names) {
  const ValueId logits = inputs.at(0), labels = inputs.at(1);
  std::vector<int> axes = vocabulary_axes(graph.type(logits));
  if (axes.empty()) return {};
  Attrs attrs;
  if (node.attrs.has(kVocabulary)) attrs.set(kVocabulary, node.attrs.integer(kVocabulary));
  ValueId stats = graph.add1(kSoftmaxStats, {logits, labels}, attrs, names.at(0) + ".stats");
  // Inner axes split last, so their parts are joined first.
  std::reverse(axes.begin(), axes.end());
  for (const int axis : axes) {
    stats = redistribute(graph, stats, graph.mesh().axis(axis).name, Placement::replicated());
  }
  return graph.add(kSoftmaxFinish, {logits, labels, stats}, node.attrs, names);
}

}  // namespace

const OpDef kSoftmaxCrossEntropy = {.name = "softmax_cross_entropy",
                                    .infer = infer,
                                    .cost = cost,
                                    .backward = backward,
                                    .layout = layout,
                                    .localize = localize_whole,
                                    .expand = expand};
const OpDef kSoftmaxStats = {
    .name = "softmax_stats", .infer = infer_stats, .cost = cost_stats, .localize = localize};
const OpDef kSoftmaxFinish = {.name = "softmax_finish",
                              .infer = infer_finish,
                              .cost = cost_finish,
                              .backward = backward,
                              .layout = layout,
                              .localize = localize};

std::vector<const OpDef*> softmax_cross_entropy_ops() {
  return {&kSoftmaxCrossEntropy, &kSoftmaxStats, &kSoftmaxFinish};
}

int64_t columns_that_count(const KernelCall& call) {
  return call.attrs.has(kNumLogits) ? call.attrs.integer(kNumLogits) : call.inputs[0].cols();
}

SoftmaxCrossEntropy softmax_cross_entropy(Graph& graph, ValueId logits, ValueId labels,
                                          DType gradient_dtype, const std::string& name,
                                          int64_t vocabulary) {
  Node node{.op = &kSoftmaxCrossEntropy,
            .attrs = {{"gradient_dtype", std::string(dtype_name(gradient_dtype))}}};
  if (vocabulary > 0) node.attrs.set(kVocabulary, vocabulary);
  const std::vector<std::string> names = {name, "d." + graph.value(logits).name};
  std::vector<ValueId> outputs = expand(graph, node, {logits, labels}, names);
  if (outputs.empty()) outputs = graph.add(*node.op, {logits, labels}, node.attrs, names);
  return {outputs[0], outputs[1]};
}

}  // namespace skein
