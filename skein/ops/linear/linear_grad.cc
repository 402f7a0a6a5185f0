// The rules of linear's derivatives.
#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear.h"
#include "skein/ops/linear/linear_rules.h"

namespace skein {
namespace {

using linear_rules::bytes_read;
using linear_rules::num_parts;

// Weights follow the gradients.
int first_weight(const OpCall& call) { return static_cast<int>(call.attrs.integer("parts")); }

int num_dx_parts(const OpCall& call) {
  return num_parts(call, {.lists = 2, .fp8_magnitudes = 2, .first_weight = first_weight(call)});
}
int num_dw_parts(const OpCall& call) {
  return num_parts(call, {.lists = 2, .singles = 1, .fp8_magnitudes = 2});
}
int num_db_parts(const OpCall& call) { return num_parts(call, {.lists = 2}); }
int num_dx_dw_parts(const OpCall& call) {
  return num_parts(
      call, {.lists = 3, .singles = 1, .fp8_magnitudes = 3, .first_weight = first_weight(call)});
}

Attrs parts_attr(size_t parts) { return {{"parts", static_cast<int64_t>(parts)}}; }

int64_t local_dim(const OpCall& call, int operand, int dim) {
  return call.input(operand).local_shape(call.mesh).dim(dim);
}

std::vector<TensorType> infer_dx(const OpCall& call) {
  const int parts = num_dx_parts(call);
  TensorType dx;
  for (int i = 0; i < parts; ++i) {
    const TensorType &dy = check_matrix(call, i), &w = check_matrix(call, parts + i);
    call.check(dy.shape.dim(1) == w.shape.dim(0) && dy.dtype == w.dtype, "{} does not match {}",
               call.describe(i), call.describe(parts + i));
    TensorType term = {dy.dtype, Shape({dy.shape.dim(0), w.shape.dim(1)}),
                       linear_rules::match(call, i, parts + i,
                                           {{"R", "R", "R"},
                                            {"S0", "R", "S0"},
                                            {"S1", "S0", "P"},
                                            {"R", "S1", "S1"},
                                            {"P", "R", "P"}})};
    if (i == 0) {
      dx = std::move(term);
    } else {
      call.check(term == dx, "{} times {} gives {}: the other parts give {}", call.describe(i),
                 call.describe(parts + i), term.to_string(call.mesh), dx.to_string(call.mesh));
    }
  }
  return {dx};
}

Cost cost_dx(const OpCall& call) {
  const int parts = num_dx_parts(call);
  Cost cost;
  for (int i = 0; i < parts; ++i) {
    cost.flops += 2.0 * static_cast<double>(local_dim(call, i, 0)) *
                  static_cast<double>(local_dim(call, i, 1)) *
                  static_cast<double>(local_dim(call, parts + i, 1));
  }
  cost.bytes_read = bytes_read(call);
  cost.bytes_written = output_bytes(call);
  return cost;
}

Layout layout_dx(const OpCall& call) {
  const int parts = num_dx_parts(call);
  if (parts == 1) return {};
  return {
      {},
      {{false, linear_rules::range(0, parts), 1}, {false, linear_rules::range(parts, parts), 0}}};
}

std::vector<TensorType> infer_dw(const OpCall& call) {
  const int parts = num_dw_parts(call);
  const TensorType& x = check_matrix(call, parts);
  std::vector<TensorType> outputs;
  for (int i = 0; i < parts; ++i) {
    const TensorType &dy = check_matrix(call, i), &sum = call.input(parts + 1 + i);
    call.check(dy.shape.dim(0) == x.shape.dim(0) && dy.dtype == x.dtype, "{} does not match {}",
               call.describe(i), call.describe(parts));
    const TensorType expected = {DType::kF32, Shape({dy.shape.dim(1), x.shape.dim(1)}),
                                 linear_rules::match(call, i, parts,
                                                     {{"R", "R", "R"},
                                                      {"S0", "S0", "P"},
                                                      {"S1", "R", "S0"},
                                                      {"R", "S1", "S1"},
                                                      {"P", "R", "P"},
                                                      {"R", "P", "P"}})};
    call.check(sum == expected, "gradient sum {}: {} and {} make {}", call.describe(parts + 1 + i),
               call.describe(i), call.describe(parts), expected.to_string(call.mesh));
    outputs.push_back(sum);
  }
  return outputs;
}

Cost cost_dw(const OpCall& call) {
  const int parts = num_dw_parts(call);
  Cost cost;
  for (int i = 0; i < parts; ++i) {
    cost.flops += 2.0 * static_cast<double>(local_dim(call, i, 0)) *
                  static_cast<double>(local_dim(call, i, 1)) *
                  static_cast<double>(local_dim(call, parts, 1));
  }
  cost.bytes_written = output_bytes(call);
  cost.bytes_read = input_bytes(call) - (is_from_zero(call.attrs) ? cost.bytes_written : 0);
  return cost;
}

Layout layout_dw(const OpCall& call) {
  const int parts = num_dw_parts(call);
  Layout layout;
  for (int i = 0; i < parts; ++i) layout.aliases.push_back({i, parts + 1 + i, true, 0});
  if (parts > 1) {
    layout.bundles.push_back({false, linear_rules::range(0, parts), 1});
    layout.bundles.push_back({false, linear_rules::range(parts + 1, parts), 0});
  }
  return layout;
}

std::vector<TensorType> infer_db(const OpCall& call) {
  const int parts = num_db_parts(call);
  std::vector<TensorType> outputs;
  for (int i = 0; i < parts; ++i) {
    const TensorType &dy = check_matrix(call, i), &sum = call.input(parts + i);
    TensorType expected = {DType::kF32, Shape({dy.shape.dim(1)}), {}};
    for (const Placement placement : dy.placements) {
      const bool pending = placement.is_partial() || placement == Placement::sharded(0);
      expected.placements.push_back(pending                  ? Placement::partial()
                                    : placement.is_sharded() ? Placement::sharded(0)
                                                             : Placement::replicated());
    }
    call.check(sum == expected, "gradient sum {}: {} makes {}", call.describe(parts + i),
               call.describe(i), expected.to_string(call.mesh));
    outputs.push_back(sum);
  }
  return outputs;
}

Cost cost_db(const OpCall& call) {
  const int parts = num_db_parts(call);
  Cost cost;
  for (int i = 0; i < parts; ++i) {
    cost.flops += static_cast<double>(call.input(i).local_shape(call.mesh).num_elements());
  }
  cost.bytes_read = input_bytes(call);
  cost.bytes_written = output_bytes(call);
  return cost;
}

Layout layout_db(const OpCall& call) {
  const int parts = num_db_parts(call);
  Layout layout;
  for (int i = 0; i < parts; ++i) layout.aliases.push_back({i, parts + i, true, 0});
  return layout;
}

// A call of linear_dx or linear_dw with some of the inputs, largest magnitudes among them.
OpCall with_inputs(const OpCall& call, std::string_view op,
                   std::vector<std::pair<int, int>> ranges) {
  OpCall some{op, call.scope, call.mesh, call.attrs, {}, {}, {}};
  for (const auto& [begin, end] : ranges) {
    for (int i = begin; i < end; ++i) {
      some.inputs.push_back(call.inputs.at(i));
      some.input_names.push_back(call.input_names.at(i));
    }
  }
  return some;
}
OpCall dx_of(const OpCall& call) {
  const int parts = num_dx_dw_parts(call), own = 3 * parts + 1;
  if (!is_fp8(call.attrs)) return with_inputs(call, "linear_dx", {{0, 2 * parts}});
  return with_inputs(call, "linear_dx",
                     {{0, 2 * parts}, {own, own + 2}, {own + 3, call.num_inputs()}});
}
OpCall dw_of(const OpCall& call) {
  const int parts = num_dx_dw_parts(call), own = 3 * parts + 1;
  if (!is_fp8(call.attrs)) return with_inputs(call, "linear_dw", {{0, parts}, {2 * parts, own}});
  return with_inputs(call, "linear_dw",
                     {{0, parts}, {2 * parts, own}, {own, own + 1}, {own + 2, own + 3}});
}

std::vector<TensorType> infer_dx_dw(const OpCall& call) {
  std::vector<TensorType> outputs = infer_dx(dx_of(call));
  for (TensorType& sum : infer_dw(dw_of(call))) outputs.push_back(std::move(sum));
  return outputs;
}

Cost cost_dx_dw(const OpCall& call) {
  const int64_t sums = output_bytes(call) - call.output(0).local_bytes(call.mesh);
  return {cost_dx(dx_of(call)).flops + cost_dw(dw_of(call)).flops,
          bytes_read(call) - (is_from_zero(call.attrs) ? sums : 0), output_bytes(call)};
}

Layout layout_dx_dw(const OpCall& call) {
  const int parts = num_dx_dw_parts(call);
  Layout layout;
  for (int i = 0; i < parts; ++i) layout.aliases.push_back({1 + i, 2 * parts + 1 + i, true, 0});
  if (parts > 1) {
    layout.bundles.push_back({false, linear_rules::range(0, parts), 1});
    layout.bundles.push_back({false, linear_rules::range(parts, parts), 0});
    layout.bundles.push_back({false, linear_rules::range(2 * parts + 1, parts), 0});
  }
  return layout;
}

std::vector<ValueId> add_accumulating(Graph& graph, const OpDef& op, std::vector<ValueId> inputs,
                                      const std::vector<ValueId>& sums) {
  std::vector<std::string> names;
  for (const ValueId sum : sums) names.push_back(graph.value(sum).name);
  inputs.insert(inputs.end(), sums.begin(), sums.end());
  return graph.add(op, std::move(inputs), parts_attr(sums.size()), names);
}

}  // namespace

const OpDef kLinearDx = {.name = "linear_dx",
                         .infer = infer_dx,
                         .cost = cost_dx,
                         .layout = layout_dx,
                         .can_use_fp8 = true};
const OpDef kLinearDw = {.name = "linear_dw",
                         .infer = infer_dw,
                         .cost = cost_dw,
                         .layout = layout_dw,
                         .can_use_fp8 = true};
const OpDef kLinearDxDw = {.name = "linear_dx_dw",
                           .infer = infer_dx_dw,
                           .cost = cost_dx_dw,
                           .layout = layout_dx_dw,
                           .can_use_fp8 = true};
const OpDef kLinearDb = {
    .name = "linear_db", .infer = infer_db, .cost = cost_db, .layout = layout_db};

ValueId linear_dx(Graph& graph, const std::vector<ValueId>& dy, const std::vector<ValueId>& weights,
                  const std::string& name) {
  std::vector<ValueId> inputs = dy;
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  return graph.add1(kLinearDx, std::move(inputs), parts_attr(dy.size()), name);
}

std::vector<ValueId> linear_dw(Graph& graph, const std::vector<ValueId>& dy, ValueId x,
                               const std::vector<ValueId>& sums) {
  std::vector<ValueId> inputs = dy;
  inputs.push_back(x);
  return add_accumulating(graph, kLinearDw, std::move(inputs), sums);
}

std::vector<ValueId> linear_db(Graph& graph, const std::vector<ValueId>& dy,
                               const std::vector<ValueId>& sums) {
  return add_accumulating(graph, kLinearDb, dy, sums);
}

}  // namespace skein
