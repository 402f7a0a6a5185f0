#include "skein/ops/muon/muon.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "skein/base/numbers/hash.h"
#include "skein/ops/checks.h"
#include "skein/ops/local_elements.h"
#include "skein/ops/muon/orthogonalize.h"
#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

// ---- momentum

std::vector<TensorType> infer_momentum(const OpCall& call) {
  const TensorType& m = check_matrix(call, 1);
  check_type(call, 0, DType::kF32, m.shape);
  check_type(call, 2, DType::kF32, {1});
  check_type(call, 3, DType::kI32, {1});
  const double momentum = call.attrs.real("momentum");
  call.check(momentum >= 0 && momentum < 1, "momentum is {}: expected a number of [0, 1)",
             momentum);
  const auto direction = parse_dtype(call.attrs.text("direction"));
  call.check(direction && is_compute_dtype(*direction), "direction is '{}': expected f32 or bf16",
             call.attrs.text("direction"));
  static constexpr std::array<std::string_view, 3> kRules = {
      "S0 S0 R R -> S0 S0 S0", "S1 S1 R R -> S1 S1 S1", "F F R R -> F F F"};
  const auto placements = match_placements(call, {0, 1, 2, 3}, 3, kRules);
  return {{DType::kF32, m.shape, placements[0]},
          {m.dtype, m.shape, placements[1]},
          {*direction, m.shape, placements[2]}};
}

Cost cost_momentum(const OpCall& call) {
  const double elements = call.input(0).local_shape(call.mesh).num_elements();
  const int64_t kept = keeps_gradient(call.attrs) ? call.input(0).local_bytes(call.mesh) : 0;
  return {6 * elements, input_bytes(call), output_bytes(call) - kept};
}

Layout layout_momentum(const OpCall&) {
  Layout layout;
  layout.aliases = {{.output = 0, .input = 0}, {.output = 1, .input = 1}};
  return layout;
}

void localize_momentum(const OpCall& call, int64_t rank, Attrs& attrs) {
  set_local_elements(call, call.input(0), call.input(0), rank, attrs);
}

// ---- apply

constexpr int kMaster = 2;

std::vector<TensorType> infer_apply(const OpCall& call) {
  const TensorType& w = check_matrix(call, 0);
  check_same(call, 0, 1);
  const bool has_master = call.has_input(kMaster);
  if (has_master) {
    call.check(w.dtype == DType::kBF16, "{} has a master copy: it must be bf16", call.describe(0));
    check_type(call, kMaster, DType::kF32, w.shape);
  }
  check_type(call, 3, DType::kF32, {1});
  check_type(call, 4, DType::kI32, {1});
  static constexpr std::array<std::string_view, 4> kRules = {"S0 S0 R R -> S0", "S1 S1 R R -> S1",
                                                             "F F R R -> F", "R F R R -> F"};
  static constexpr std::array<std::string_view, 4> kMasterRules = {
      "S0 S0 S0 R R -> S0 S0", "S1 S1 S1 R R -> S1 S1", "F F F R R -> F F", "R F F R R -> F F"};
  const auto placements = has_master ? match_placements(call, {0, 1, 2, 3, 4}, 2, kMasterRules)
                                     : match_placements(call, {0, 1, 3, 4}, 1, kRules);
  std::vector<TensorType> types = {{w.dtype, w.shape, placements[0]}};
  if (has_master) types.push_back({DType::kF32, w.shape, placements[1]});
  return types;
}

// Whether the rank updates only a range of what it holds of the weight.
bool takes_range(const OpCall& call) {
  return call.input(0).placements != call.input(1).placements;
}

Cost cost_apply(const OpCall& call) {
  const double elements = call.input(1).local_shape(call.mesh).num_elements();
  const int64_t weight_elsewhere =
      call.input(0).local_bytes(call.mesh) - call.output(0).local_bytes(call.mesh);
  return {(call.attrs.flag("stochastic_rounding") ? 35 : 4) * elements,
          input_bytes(call) - weight_elsewhere, output_bytes(call)};
}

Layout layout_apply(const OpCall& call) {
  Layout layout;
  if (!takes_range(call)) layout.aliases.push_back({.output = 0, .input = 0});
  if (call.has_input(kMaster)) layout.aliases.push_back({.output = 1, .input = kMaster});
  return layout;
}

void localize_apply(const OpCall& call, int64_t rank, Attrs& attrs) {
  set_local_elements(call, call.input(1), call.input(0), rank, attrs);
}

// ---- the update of a group of parameters

constexpr StateRow kMomentum = {"momentum"};

class Group {
 public:
  Group(UpdatePhase& phase, std::span<const OptimizedParameter> parameters)
      : phase_(phase), graph_(phase.graph()), parameters_(parameters) {}

  std::vector<ValueId> append() {
    std::vector<ValueId> values;
    for (const OptimizedParameter& one : parameters_) values.push_back(direction(one));
    const std::vector<TensorType> parts = types_of(values);
    for (auto axis = phase_.state_axes().rbegin(); axis != phase_.state_axes().rend(); ++axis) {
      move(values, *axis, Placement::replicated());
    }
    const std::vector<TensorType> ranges_joined = types_of(values);
    for (int axis = graph_.mesh().num_axes() - 1; axis >= 0; --axis) {
      move(values, axis, Placement::replicated());  // slices of tensor ranks
    }
    orthogonalize_by_owners(values);
    for (int axis = 0; axis < graph_.mesh().num_axes(); ++axis) {
      if (!is_state_axis(axis)) move_as(values, axis, ranges_joined);
    }
    for (const int axis : phase_.state_axes()) move_as(values, axis, parts);
    std::vector<ValueId> weights;
    for (size_t i = 0; i < values.size(); ++i) {
      weights.push_back(apply(parameters_[i], values[i], masters_[i]));
    }
    return weights;
  }

 private:
  std::vector<TensorType> types_of(const std::vector<ValueId>& values) const {
    std::vector<TensorType> types;
    for (const ValueId id : values) types.push_back(graph_.type(id));
    return types;
  }

  bool is_state_axis(int axis) const {
    const std::vector<int>& axes = phase_.state_axes();
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }

  int64_t stream(const OptimizedParameter& one) const {
    return static_cast<int64_t>(static_cast<uint32_t>(hash_name(one.name)));
  }

  ValueId direction(const OptimizedParameter& one) {
    const ValueId momentum = phase_.state(one, kMomentum);
    masters_.push_back(phase_.master(one));
    const std::string gradient = graph_.value(one.gradient).name;
    const DType dtype = graph_.type(one.weight).dtype;
    return graph_.add(kMuonMomentum, {one.gradient, momentum, phase_.scale(), phase_.step()},
                      {{"momentum", phase_.settings().momentum},
                       {"direction", std::string(dtype_name(dtype))},
                       {"seed", static_cast<int64_t>(phase_.settings().seed)},
                       {"stream", stream(one)}},
                      {gradient, graph_.value(momentum).name, "direction." + one.name})[2];
  }

  // Values of one placement over the axis share a collective.
  void move_some(std::vector<ValueId>& values, const std::vector<size_t>& which, int axis,
                 Placement to) {
    std::vector<ValueId> some;
    for (const size_t i : which) some.push_back(values[i]);
    const auto moved = redistribute(graph_, some, graph_.mesh().axis(axis).name, to);
    for (size_t i = 0; i < which.size(); ++i) values[which[i]] = moved[i];
  }

  using Key = std::pair<std::string, std::string>;  // from, to

  void move_as(std::vector<ValueId>& values, int axis, const std::vector<TensorType>& wanted) {
    std::map<Key, std::vector<size_t>> groups;
    for (size_t i = 0; i < values.size(); ++i) {
      const Placement from = graph_.type(values[i]).placements[axis];
      const Placement to = wanted[i].placements[axis];
      if (!(from == to)) groups[{from.to_string(), to.to_string()}].push_back(i);
    }
    for (const auto& [key, which] : groups) {
      move_some(values, which, axis, Placement::parse(key.second));
    }
  }

  void move(std::vector<ValueId>& values, int axis, Placement to) {
    std::vector<TensorType> wanted = types_of(values);
    for (TensorType& type : wanted) type.placements[axis] = to;
    move_as(values, axis, wanted);
  }

  void orthogonalize_by_owners(std::vector<ValueId>& values) {
    std::vector<std::string> axes;
    int64_t num_ranks = 1;
    for (const int axis : phase_.state_axes()) {
      axes.push_back(graph_.mesh().axis(axis).name);
      num_ranks *= graph_.mesh().axis(axis).size;
    }
    std::vector<Shape> shapes;
    for (const ValueId id : values) shapes.push_back(graph_.type(id).shape);
    const std::vector<int64_t> owners = muon_owners(shapes, num_ranks);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] =
          graph_.add1(kOrthogonalize, {values[i]},
                      {{"over", fmt::format("{}", fmt::join(axes, ","))}, {"owner", owners[i]}},
                      "orthogonal." + parameters_[i].name);
    }
  }

  ValueId apply(const OptimizedParameter& one, ValueId orthogonal, ValueId master) {
    std::vector<std::string> names = {one.name};
    if (master != kNoValue) names.push_back(graph_.value(master).name);
    const OptimizerSettings& settings = phase_.settings();
    return graph_.add(kMuonApply,
                      {one.weight, orthogonal, master, phase_.learning_rate(), phase_.step()},
                      {{"weight_decay", one.weight_decay},
                       {"update_scale", muon_update_scale(graph_.type(one.weight).shape)},
                       {"stochastic_rounding", settings.stochastic_rounding},
                       {"seed", static_cast<int64_t>(settings.seed)},
                       {"stream", stream(one)}},
                      names)[0];
  }

  UpdatePhase& phase_;
  Graph& graph_;
  const std::span<const OptimizedParameter> parameters_;
  std::vector<ValueId> masters_;
};

std::vector<ValueId> append(UpdatePhase& phase, std::span<const OptimizedParameter> parameters) {
  return Group(phase, parameters).append();
}

}  // namespace

const OpDef kMuonMomentum = {.name = "muon_momentum",
                             .infer = infer_momentum,
                             .cost = cost_momentum,
                             .layout = layout_momentum,
                             .localize = localize_momentum};
const OpDef kMuonApply = {.name = "muon_apply",
                          .infer = infer_apply,
                          .cost = cost_apply,
                          .layout = layout_apply,
                          .localize = localize_apply};

std::vector<const OpDef*> muon_ops() { return {&kMuonMomentum, &kOrthogonalize, &kMuonApply}; }

double muon_update_scale(const Shape& shape) {
  return 0.2 * std::sqrt(static_cast<double>(std::max(shape.dim(0), shape.dim(1))));
}

std::vector<int64_t> muon_owners(const std::vector<Shape>& matrices, int64_t num_ranks) {
  std::vector<size_t> order(matrices.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return orthogonalize_flops(matrices[a]) > orthogonalize_flops(matrices[b]);
  });
  std::vector<double> loads(static_cast<size_t>(num_ranks), 0.0);
  std::vector<int64_t> owners(matrices.size());
  for (const size_t i : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    owners[i] = least - loads.begin();
    *least += orthogonalize_flops(matrices[i]);
  }
  return owners;
}

const Optimizer& muon_optimizer() {
  static const Optimizer optimizer = {.name = "muon",
                                      .state = {kMomentum},
                                      .op = &kMuonMomentum,
                                      .gradient = 0,
                                      .only_matrices = true,
                                      .has_momentum = true,
                                      .most_owners = kMostMuonOwners,
                                      .append = append};
  return optimizer;
}

}  // namespace skein
