#include "skein/ops/redistribute/redistribute.h"

#include "skein/base/text/units.h"
#include "skein/ir/backward.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

constexpr int64_t kStagingPad = 64;  // elements; at least the alignment of a collective

int find_axis(const OpCall& call) {
  const std::string& name = call.attrs.text("axis");
  const int axis = call.mesh.find(name);
  call.check(axis >= 0, "{} has no axis '{}'", call.mesh.to_string(), name);
  return axis;
}

bool has_flag(const OpCall& call, std::string_view name) {
  return call.attrs.has(name) && call.attrs.flag(name);
}
bool has_targets(const OpCall& call) { return has_flag(call, "into"); }
bool is_over_terms(const OpCall& call) { return has_flag(call, "over_terms"); }

Placement from_placement(const OpCall& call, int axis) {
  return has_flag(call, "pending") ? Placement::partial() : call.input(0).placements[axis];
}

int num_values(const OpCall& call) {
  return has_targets(call) ? call.num_inputs() / 2 : call.num_inputs();
}

// Empty, or why the redistribution is not possible.
std::string refusal(const TensorType& type, const Mesh& mesh, int axis, Placement to) {
  const Placement from = type.placements.at(axis);
  if (from == to) return "is " + to.to_string() + " already";
  if (to.is_partial()) return "cannot become Partial: nothing is pending";
  const bool from_split = from.is_sharded() || from.is_flat();
  const bool to_split = to.is_sharded() || to.is_flat();
  if (from_split && to_split) {
    return fmt::format("cannot go from {} to {} at once: make it Replicated first",
                       from.to_string(), to.to_string());
  }
  if (to.is_sharded() && to.dim() >= type.shape.rank()) {
    return fmt::format("has no dim {}", to.dim());
  }
  const Placement split = from_split ? from : to;
  if (mesh.axis(axis).size == 1) return "";
  const bool gathers_columns = from.is_sharded() && from.dim() == 1 && type.shape.rank() == 2;
  if (split.is_sharded() && split.dim() > 0 && !from.is_replicated() && !gathers_columns) {
    return fmt::format(
        "is split along dim {}, and of collectives along other dims than 0 only the "
        "gathering of a matrix's columns is built",
        split.dim());
  }
  for (int inner = axis + 1; inner < mesh.num_axes(); ++inner) {
    if ((from_split || to_split) && type.placements[inner] == split) {
      return fmt::format("is {} over {} as well, which cuts after: redistribute that first",
                         split.to_string(), mesh.axis(inner).name);
    }
  }
  return "";
}

TensorType placed(const OpCall& call, int index, int axis, Placement to) {
  TensorType type = call.input(index);
  if (has_flag(call, "pending")) type.placements[axis] = Placement::partial();
  const std::string why = refusal(type, call.mesh, axis, to);
  call.check(why.empty(), "{}, over {}, {}", call.describe(index), call.mesh.axis(axis).name, why);
  call.check(call.input(index).placements[axis] == call.input(0).placements[axis],
             "{} and {} are placed differently over {}", call.describe(0), call.describe(index),
             call.mesh.axis(axis).name);
  call.check(type.dtype == call.input(0).dtype, "{} and {} have different dtypes", call.describe(0),
             call.describe(index));
  type.placements[axis] = to;
  type.local_shape(call.mesh);  // throws where the axis does not divide the dim
  return type;
}

std::vector<TensorType> infer(const OpCall& call) {
  const int axis = find_axis(call);
  const Placement to = Placement::parse(call.attrs.text("to"));
  std::vector<TensorType> types;
  for (int i = 0; i < num_values(call); ++i) {
    types.push_back(placed(call, i, axis, to));
    if (has_targets(call)) {
      const int target = num_values(call) + i;
      call.check(call.input(target) == types.back(), "{} cannot take {}: expected {}",
                 call.describe(target), call.describe(i), types.back().to_string(call.mesh));
    }
  }
  return types;
}

Cost cost(const OpCall& call) {
  const int axis = find_axis(call);
  Cost cost{0, 0, output_bytes(call)};
  for (int i = 0; i < num_values(call); ++i) {
    cost.bytes_read += call.input(i).local_bytes(call.mesh);
    if (from_placement(call, axis).is_partial()) {
      const auto elements =
          static_cast<double>(call.output(i).local_shape(call.mesh).num_elements());
      cost.flops += elements * static_cast<double>(call.mesh.axis(axis).size - 1);
    }
  }
  return cost;
}

Layout layout(const OpCall& call) {
  Layout layout;
  // An i32 comes from the host, and is not overwritten.
  const bool reduces = call.input(0).dtype != DType::kI32 && call.attrs.text("to") == "R" &&
                       from_placement(call, find_axis(call)).is_partial();
  for (int i = 0; i < num_values(call); ++i) {
    if (has_targets(call)) layout.aliases.push_back({.output = i, .input = num_values(call) + i});
    if (!has_targets(call) && reduces) layout.aliases.push_back({.output = i, .input = i});
  }
  return layout;
}

// What the kernel must know from the types: the collective, and each value's elements and share.
void localize(const OpCall& call, int64_t rank, Attrs& attrs) {
  const int axis = find_axis(call);
  const Placement from = from_placement(call, axis), to = call.output(0).placements[axis];
  attrs.set("kind", std::string(from.is_replicated()                      ? "slice"
                                : from.is_partial() && to.is_replicated() ? "all_reduce"
                                : from.is_partial()                       ? "reduce_scatter"
                                                                          : "all_gather"));
  attrs.set("index", call.mesh.coordinates(rank)[axis]);
  attrs.set("size", call.mesh.axis(axis).size);
  std::vector<int64_t> elements, shares;
  for (int i = 0; i < num_values(call); ++i) {
    const bool from_whole = from.is_replicated() || from.is_partial();
    const TensorType& whole = from_whole ? call.input(i) : call.output(i);
    const TensorType& share = from_whole ? call.output(i) : call.input(i);
    elements.push_back(whole.local_shape(call.mesh).num_elements());
    shares.push_back(share.local_shape(call.mesh).num_elements());
  }
  attrs.set("elements", elements);
  attrs.set("shares", shares);
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

// Gathering again costs communication; keeping the result costs as many times the memory as there
// are ranks.
Rematerialization rematerialize(const Node& node) {
  if (!node.attrs.has("gathers") || node.outputs.size() != 1) return {};
  return {.inputs = node.inputs, .outputs = {0}};
}

// The two halves. start: (x..., [t...]) -> (y..., staging); wait: (y..., staging, x...) -> (y'...).
// The staging lives, and x stays as it is, until the wait.

std::vector<TensorType> infer_start(const OpCall& call) {
  std::vector<TensorType> types = infer(call);
  const int axis = find_axis(call);
  const bool reduces = call.input(0).placements[axis].is_partial();
  int64_t elements = 1;
  for (int i = 0; i < num_values(call) && reduces; ++i) {
    const int64_t ranks = call.mesh.axis(axis).size;
    const int64_t whole = call.input(i).local_shape(call.mesh).num_elements();
    const bool scatters = !types[i].placements[axis].is_replicated();
    const int64_t share =
        scatters ? types[i].local_shape(call.mesh).num_elements() : ceil_div(whole, ranks);
    elements += round_up((ranks - 1) * share + kStagingPad, kStagingPad);
  }
  types.push_back(TensorType::replicated(call.input(0).dtype, Shape{elements}, call.mesh));
  return types;
}

Layout layout_start(const OpCall& call) {
  Layout layout;
  for (int i = 0; i < num_values(call); ++i) {
    if (has_targets(call)) layout.aliases.push_back({.output = i, .input = num_values(call) + i});
    if (is_over_terms(call)) layout.aliases.push_back({.output = i, .input = i});
  }
  return layout;
}

int num_waited(const OpCall& call) {
  const int others = call.num_inputs() - 1;
  return is_over_terms(call) ? others : others / 2;
}

std::vector<TensorType> infer_wait(const OpCall& call) {
  std::vector<TensorType> types;
  for (int i = 0; i < num_waited(call); ++i) types.push_back(call.input(i));
  return types;
}

Layout layout_wait(const OpCall& call) {
  Layout layout;
  if (has_flag(call, "copies")) return layout;
  for (int i = 0; i < num_waited(call); ++i) layout.aliases.push_back({.output = i, .input = i});
  return layout;
}

// Treats the wait as the redistribution that it ends.
void localize_wait(const OpCall& call, int64_t rank, Attrs& attrs) {
  if (is_over_terms(call)) return;  // nothing is left to do
  Attrs without_targets = call.attrs;
  without_targets.set("into", false);
  OpCall whole{call.op, call.scope, call.mesh, without_targets, {}, {}, call.outputs};
  for (int i = 0; i < num_waited(call); ++i) {
    whole.inputs.push_back(call.inputs[num_waited(call) + 1 + i]);
  }
  Attrs found;
  localize(whole, rank, found);
  for (const char* name : {"elements", "shares"}) attrs.set(name, found.integers(name));
  for (const char* name : {"index", "size"}) attrs.set(name, found.integer(name));
  attrs.set("kind", found.text("kind"));
}

Cost cost_wait(const OpCall& call) {
  const int64_t copied = has_flag(call, "copies") ? output_bytes(call) : 0;
  return {0, call.input(num_waited(call)).local_bytes(call.mesh) + copied, copied};
}

}  // namespace

const OpDef kRedistributeStart = {.name = "redistribute_start",
                                  .infer = infer_start,
                                  .cost = cost,
                                  .layout = layout_start,
                                  .localize = localize,
                                  .ended_by = "redistribute_wait",
                                  .collective = collective_of};
const OpDef kRedistributeWait = {.name = "redistribute_wait",
                                 .infer = infer_wait,
                                 .cost = cost_wait,
                                 .layout = layout_wait,
                                 .localize = localize_wait,
                                 .only_waits = true};

const OpDef kRedistribute = {.name = "redistribute",
                             .infer = infer,
                             .cost = cost,
                             .backward = backward,
                             .layout = layout,
                             .passes_pending = true,
                             .localize = localize,
                             .collective = collective_of,
                             .rematerialize = rematerialize};

std::vector<const OpDef*> redistribute_ops() {
  return {&kRedistribute, &kRedistributeStart, &kRedistributeWait};
}

RedistributeHalves split_redistribute(Graph& graph, const Node& node, int64_t channel,
                                      Results results) {
  const size_t values = node.outputs.size();
  Attrs attrs = node.attrs;
  attrs.set("channel", channel);
  if (results == Results::kOverTerms) attrs.set("over_terms", true);
  std::vector<std::string> names;
  for (const ValueId id : node.outputs) names.push_back(graph.value(id).name + ".started");
  names.push_back(fmt::format("staging.{}", channel));
  std::vector<ValueId> started = graph.add(kRedistributeStart, node.inputs, attrs, names);
  RedistributeHalves halves{graph.nodes().back(), {}};
  halves.start.scope = node.scope;
  halves.start.phase = node.phase;
  halves.start.chunk = node.chunk;
  std::vector<ValueId> inputs = std::move(started);
  if (results != Results::kOverTerms) {
    inputs.insert(inputs.end(), node.inputs.begin(), node.inputs.begin() + values);
  }
  halves.wait = {&kRedistributeWait, attrs,      std::move(inputs), node.outputs,
                 node.scope,         node.phase, node.chunk};
  if (results == Results::kCopied) halves.wait.attrs.set("copies", true);
  return halves;
}

bool can_redistribute(const TensorType& type, const Mesh& mesh, int axis, Placement to) {
  const Placement from = type.placements.at(axis);
  if (from.is_sharded() && from.dim() > 0) return false;
  if (!refusal(type, mesh, axis, to).empty()) return false;
  if (!to.is_sharded()) return true;
  TensorType result = type;
  result.placements[axis] = to;
  return result.splits_evenly(mesh);
}

ValueId redistribute(Graph& graph, ValueId value, std::string_view axis, Placement to) {
  return redistribute(graph, std::vector<ValueId>{value}, axis, to).front();
}

ValueId sum_over(Graph& graph, ValueId value, std::string_view axis) {
  return sum_over(graph, std::vector<ValueId>{value}, axis).front();
}

std::vector<ValueId> sum_over(Graph& graph, const std::vector<ValueId>& values,
                              std::string_view axis) {
  std::vector<std::string> names;
  for (const ValueId value : values) {
    names.push_back(fmt::format("{}.{}", graph.value(value).name, axis));
  }
  return graph.add(kRedistribute, values,
                   {{"axis", std::string(axis)}, {"to", std::string("R")}, {"pending", true}},
                   names);
}

ValueId redistribute_all(Graph& graph, ValueId value, const Placements& wanted) {
  const int num_axes = graph.mesh().num_axes();
  const auto move = [&](int axis, Placement to) {
    if (!(graph.type(value).placements[axis] == to)) {
      value = redistribute(graph, value, graph.mesh().axis(axis).name, to);
    }
  };
  for (int axis = num_axes - 1; axis >= 0; --axis) {
    const Placement from = graph.type(value).placements[axis];
    const bool from_split = from.is_sharded() || from.is_flat();
    if (!(from == wanted[axis]) && (wanted[axis].is_replicated() || from_split)) {
      move(axis, Placement::replicated());
    }
  }
  for (int axis = 0; axis < num_axes; ++axis) {
    if (!wanted[axis].is_replicated()) move(axis, wanted[axis]);
  }
  return value;
}

std::vector<ValueId> redistribute(Graph& graph, const std::vector<ValueId>& values,
                                  std::string_view axis, Placement to,
                                  const std::vector<ValueId>& into) {
  std::vector<ValueId> inputs = values;
  inputs.insert(inputs.end(), into.begin(), into.end());
  Attrs attrs{{"axis", std::string(axis)}, {"to", to.to_string()}};
  if (!into.empty()) attrs.set("into", true);
  if (const int index = graph.mesh().find(axis); index >= 0) {
    const Placement from = graph.type(values[0]).placements[index];
    if (from.is_sharded() || from.is_flat()) attrs.set("gathers", true);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    names.push_back(into.empty()
                        ? fmt::format("{}.{}.{}", graph.value(values[i]).name, axis, to.to_string())
                        : graph.value(into[i]).name);
  }
  return graph.add(kRedistribute, std::move(inputs), std::move(attrs), names);
}

}  // namespace skein
