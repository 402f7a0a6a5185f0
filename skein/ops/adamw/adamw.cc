#include "skein/ops/adamw/adamw.h"

#include <array>

#include "skein/base/numbers/hash.h"
#include "skein/ops/checks.h"
#include "skein/ops/local_elements.h"

namespace skein {
namespace {

constexpr int kMaster = 4;

void check_attrs(const OpCall& call) {
  for (const std::string_view name : {"beta1", "beta2"}) {
    const double beta = call.attrs.real(name);
    call.check(beta >= 0 && beta < 1, "{} is {}: expected a number of [0, 1)", name, beta);
  }
  for (const std::string_view name : {"epsilon", "weight_decay"}) {
    const double value = call.attrs.real(name);
    call.check(value >= 0, "{} is {}: expected a number that is not negative", name, value);
  }
}

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& w = call.input(0);
  call.check(is_compute_dtype(w.dtype), "{} must be f32 or bf16", call.describe(0));
  check_type(call, 1, DType::kF32, w.shape);
  for (const int moment : {2, 3}) {
    const TensorType& type = call.input(moment);
    call.check(type.shape == w.shape && is_compute_dtype(type.dtype),
               "{} must be f32 or bf16 of the shape of {}", call.describe(moment),
               call.describe(0));
  }
  check_same(call, 2, 3);
  const bool has_master = call.has_input(kMaster);
  if (has_master) {
    call.check(w.dtype == DType::kBF16, "{} has a master copy: it must be bf16", call.describe(0));
    check_type(call, kMaster, DType::kF32, w.shape);
  }
  check_type(call, 5, DType::kF32, {1});
  check_type(call, 6, DType::kF32, {1});
  check_type(call, 7, DType::kI32, {1});
  check_attrs(call);

  static constexpr std::array<std::string_view, 4> kRules = {
      "S0 S0 S0 S0 R R R -> S0 S0 S0 S0", "S1 S1 S1 S1 R R R -> S1 S1 S1 S1",
      "F F F F R R R -> F F F F", "R F F F R R R -> F F F F"};
  static constexpr std::array<std::string_view, 4> kMasterRules = {
      "S0 S0 S0 S0 S0 R R R -> S0 S0 S0 S0 S0", "S1 S1 S1 S1 S1 R R R -> S1 S1 S1 S1 S1",
      "F F F F F R R R -> F F F F F", "R F F F F R R R -> F F F F F"};
  const int outputs = has_master ? 5 : 4;
  const auto placements = has_master
                              ? match_placements(call, {0, 1, 2, 3, 4, 5, 6, 7}, 5, kMasterRules)
                              : match_placements(call, {0, 1, 2, 3, 5, 6, 7}, 4, kRules);
  std::vector<TensorType> types;
  for (int i = 0; i < outputs; ++i) {
    types.push_back({call.input(i).dtype, w.shape, placements[i]});
  }
  return types;
}

// Whether the rank updates only a range of what it holds of the weight.
bool takes_range(const OpCall& call) {
  return call.input(0).placements != call.input(1).placements;
}

Cost cost(const OpCall& call) {
  const double elements = call.input(1).local_shape(call.mesh).num_elements();
  const bool noise = call.attrs.flag("stochastic_rounding");
  const int64_t weight_elsewhere =
      call.input(0).local_bytes(call.mesh) - call.output(0).local_bytes(call.mesh);
  const int64_t kept = keeps_gradient(call.attrs) ? call.input(1).local_bytes(call.mesh) : 0;
  return {(noise ? 75 : 15) * elements, input_bytes(call) - weight_elsewhere,
          output_bytes(call) - kept};
}

Layout layout(const OpCall& call) {
  Layout layout;
  for (int i = takes_range(call) ? 1 : 0; i < (call.has_input(kMaster) ? 5 : 4); ++i) {
    layout.aliases.push_back({.output = i, .input = i});
  }
  return layout;
}

void localize(const OpCall& call, int64_t rank, Attrs& attrs) {
  set_local_elements(call, call.input(1), call.input(0), rank, attrs);
}

}  // namespace

const OpDef kAdamw = {
    .name = "adamw", .infer = infer, .cost = cost, .layout = layout, .localize = localize};

std::vector<const OpDef*> adamw_ops() { return {&kAdamw}; }

namespace {

constexpr StateRow kExpAvg = {"exp_avg"}, kExpAvgSq = {"exp_avg_sq"};

std::vector<ValueId> append(UpdatePhase& phase, std::span<const OptimizedParameter> parameters) {
  const OptimizerSettings& settings = phase.settings();
  std::vector<ValueId> weights;
  for (const OptimizedParameter& one : parameters) {
    AdamwInputs inputs;
    inputs.weight = one.weight;
    inputs.gradient = one.gradient;
    inputs.exp_avg = phase.state(one, kExpAvg);
    inputs.exp_avg_sq = phase.state(one, kExpAvgSq);
    inputs.master = phase.master(one);
    inputs.scale = phase.scale();
    inputs.learning_rate = phase.learning_rate();
    inputs.step = phase.step();
    const AdamwAttrs attrs = {.beta1 = settings.beta1,
                              .beta2 = settings.beta2,
                              .epsilon = settings.epsilon,
                              .weight_decay = one.weight_decay,
                              .stochastic_rounding = settings.stochastic_rounding,
                              .seed = settings.seed,
                              .stream = static_cast<uint32_t>(hash_name(one.name))};
    weights.push_back(adamw(phase.graph(), inputs, attrs, one.name).weight);
  }
  return weights;
}

}  // namespace

const Optimizer& adamw_optimizer() {
  static const Optimizer optimizer = {.name = "adamw",
                                      .state = {kExpAvg, kExpAvgSq},
                                      .op = &kAdamw,
                                      .gradient = 1,
                                      .append = append};
  return optimizer;
}

AdamwOutputs adamw(Graph& graph, const AdamwInputs& inputs, const AdamwAttrs& attrs,
                   const std::string& name) {
  const std::vector<ValueId> ids = {inputs.weight,        inputs.gradient, inputs.exp_avg,
                                    inputs.exp_avg_sq,    inputs.master,   inputs.scale,
                                    inputs.learning_rate, inputs.step};
  std::vector<std::string> names = {name};
  for (const ValueId id : {inputs.gradient, inputs.exp_avg, inputs.exp_avg_sq, inputs.master}) {
    if (id != kNoValue) names.push_back(graph.value(id).name);
  }
  const auto outputs = graph.add(kAdamw, ids,
                                 {{"beta1", attrs.beta1},
                                  {"beta2", attrs.beta2},
                                  {"epsilon", attrs.epsilon},
                                  {"weight_decay", attrs.weight_decay},
                                  {"stochastic_rounding", attrs.stochastic_rounding},
                                  {"seed", static_cast<int64_t>(attrs.seed)},
                                  {"stream", static_cast<int64_t>(attrs.stream)}},
                                 names);
  return {outputs[0], outputs[1], outputs[2], outputs[3],
          inputs.master == kNoValue ? kNoValue : outputs[4]};
}

}  // namespace skein
