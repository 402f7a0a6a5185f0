#include "skein/ops/split/split.h"

#include <array>
#include <numeric>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

void check_rank(const OpCall& call, int index) {
  const int rank = call.input(index).shape.rank();
  call.check(rank == 1 || rank == 2, "{} must be a vector or a matrix", call.describe(index));
}

std::vector<TensorType> infer_split(const OpCall& call) {
  check_rank(call, 0);
  const TensorType& x = call.input(0);
  const std::vector<int64_t>& sizes = call.attrs.integers("sizes");
  int64_t left = x.shape.dim(0);
  // There may be hundreds of slices: the text is made for an error alone.
  const auto check_sum = [&](bool holds) {
    if (holds) return;
    call.check(false, "sizes {} do not sum to the {} rows of {}", call.attrs.to_string(),
               x.shape.dim(0), call.describe(0));
  };
  std::vector<TensorType> slices;
  for (const int64_t size : sizes) {
    check_sum(size > 0 && size <= left);
    left -= size;
    slices.push_back(x);
    slices.back().shape.set_dim(0, size);
    slices.back().local_shape(call.mesh);  // throws if an axis does not divide it
  }
  check_sum(left == 0);
  return slices;
}

Cost no_cost(const OpCall&) { return {}; }

Layout layout_split(const OpCall& call) {
  Layout layout;
  int64_t row = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    layout.aliases.push_back(
        {.output = static_cast<int>(i), .input = 0, .in_place = false, .row_offset = row});
    row += call.outputs[i]->local_shape(call.mesh).dim(0);
  }
  return layout;
}

void backward_split(BackwardContext& context) {
  std::vector<ValueId> grads;
  for (size_t i = 0; i < context.node().outputs.size(); ++i) {
    grads.push_back(context.output_grad(i));
    if (grads.back() < 0) {
      fail(ErrorCode::kInvalid, "[split] slice '{}' has no gradient: every slice must be used",
           context.graph().value(context.output(i)).name);
    }
  }
  context.add_input_grad(0, concat(context.graph(), grads, context.name(0)));
}

std::vector<TensorType> infer_concat(const OpCall& call) {
  check_rank(call, 0);
  TensorType y = call.input(0);
  for (int i = 1; i < call.num_inputs(); ++i) {
    check_rank(call, i);
    TensorType part = call.input(i);
    const int64_t rows = part.shape.dim(0);
    part.shape.set_dim(0, call.input(0).shape.dim(0));
    call.check(part == call.input(0), "{} and {} differ in more than their rows", call.describe(0),
               call.describe(i));
    y.shape.set_dim(0, y.shape.dim(0) + rows);
  }
  return {y};
}

Layout layout_concat(const OpCall& call) {
  Layout layout{.aliases = {{.output = 0, .input = 0, .in_place = false}}};
  std::vector<int> operands(call.num_inputs());
  std::iota(operands.begin(), operands.end(), 0);
  layout.bundles = {{.operands = operands, .dim = 0, .required = true}};
  return layout;
}

void backward_concat(BackwardContext& context) {
  const ValueId grad = context.output_grad(0);
  if (grad == kNoValue) return;
  if (grad == kUnitGrad) {  // every element is summed into the loss
    for (size_t i = 0; i < context.node().inputs.size(); ++i) context.add_input_grad(i, kUnitGrad);
    return;
  }
  std::vector<int64_t> sizes;
  for (const ValueId part : context.node().inputs) {
    sizes.push_back(context.graph().type(part).shape.dim(0));
  }
  const auto grads =
      split(context.graph(), grad, sizes, "d." + context.graph().value(context.output(0)).name);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (context.needs_grad(i)) context.add_input_grad(i, grads[i]);
  }
}

}  // namespace

const OpDef kSplit = {.name = "split",
                      .infer = infer_split,
                      .cost = no_cost,
                      .backward = backward_split,
                      .layout = layout_split,
                      .passes_pending = true};
const OpDef kConcat = {.name = "concat",
                       .infer = infer_concat,
                       .cost = no_cost,
                       .backward = backward_concat,
                       .layout = layout_concat,
                       .passes_pending = true};

std::vector<const OpDef*> split_ops() { return {&kSplit, &kConcat}; }

std::vector<ValueId> split(Graph& graph, ValueId x, const std::vector<int64_t>& sizes,
                           const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < sizes.size(); ++i) names.push_back(fmt::format("{}.{}", name, i));
  return graph.add(kSplit, {x}, {{"sizes", sizes}}, names);
}

ValueId concat(Graph& graph, const std::vector<ValueId>& parts, const std::string& name) {
  return graph.add1(kConcat, parts, {}, name);
}

}  // namespace skein
