#include "skein/ops/redistribute/redistribute.h"

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

int find_axis(const OpCall& call) {
  const std::string& name = call.attrs.text("axis");
  const int axis = call.mesh.find(name);
  call.check(axis >= 0, "{} has no axis '{}'", call.mesh.to_string(), name);
  return axis;
}

void check_legal(const OpCall& call, Placement from, Placement to, const std::string& axis) {
  call.check(!(from == to), "{} is {} over {} already", call.describe(0), to.to_string(), axis);
  call.check(!to.is_partial(), "{} cannot become Partial over {}: nothing is owed",
             call.describe(0), axis);
  call.check(!(from.is_sharded() && to.is_sharded()),
             "{} cannot go from {} to {} over {} at once: make it Replicated first",
             call.describe(0), from.to_string(), to.to_string(), axis);
}

std::vector<TensorType> infer(const OpCall& call) {
  TensorType type = call.input(0);
  const int axis = find_axis(call);
  const Placement from = type.placements.at(axis);
  const Placement to = Placement::parse(call.attrs.text("to"));
  check_legal(call, from, to, call.mesh.axis(axis).name);
  call.check(!from.is_partial() || type.dtype != DType::kI32,
             "{} is Partial, but not a number to add", call.describe(0));
  call.check(!to.is_sharded() || to.dim() < type.shape.rank(), "{} has no dim {}", call.describe(0),
             to.is_sharded() ? to.dim() : 0);
  type.placements[axis] = to;
  type.local_shape(call.mesh);  // throws where the axis does not divide the dim
  return {type};
}

Cost cost(const OpCall& call) {
  const int axis = find_axis(call);
  const TensorType& y = call.output(0);
  double flops = 0;
  if (call.input(0).placements[axis].is_partial()) {
    const double elements = y.local_shape(call.mesh).num_elements();
    flops = elements * static_cast<double>(call.mesh.axis(axis).size - 1);
  }
  return {flops, input_bytes(call), output_bytes(call)};
}

void backward(BackwardContext& context) {
  const ValueId dy = context.output_grad(0);
  if (dy == kNoValue) return;
  if (dy == kUnitGrad) {
    context.add_input_grad(0, kUnitGrad);  // 1 on every rank
    return;
  }
  Graph& graph = context.graph();
  const std::string& axis = context.node().attrs.text("axis");
  const int index = graph.mesh().find(axis);
  const Placement x = graph.type(context.input(0)).placements.at(index);
  const Placement wanted = x.is_sharded() ? x : Placement::replicated();
  const bool placed = graph.type(dy).placements.at(index) == wanted;
  context.add_input_grad(0, placed ? dy : redistribute(graph, dy, axis, wanted));
}

}  // namespace

const OpDef kRedistribute = {
    .name = "redistribute", .infer = infer, .cost = cost, .backward = backward};

std::vector<const OpDef*> redistribute_ops() { return {&kRedistribute}; }

ValueId redistribute(Graph& graph, ValueId value, std::string_view axis, Placement to) {
  const std::string name = fmt::format("{}.{}.{}", graph.value(value).name, axis, to.to_string());
  return graph.add1(kRedistribute, {value}, {{"axis", std::string(axis)}, {"to", to.to_string()}},
                    name);
}

}  // namespace skein
