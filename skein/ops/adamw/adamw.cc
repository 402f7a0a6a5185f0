#include "skein/ops/adamw/adamw.h"

#include <array>

#include "skein/ops/checks.h"

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
  call.check(call.attrs.integer("element_offset") >= 0, "element_offset is {}",
             call.attrs.integer("element_offset"));
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

  static constexpr std::array<std::string_view, 2> kRules = {"S0 S0 S0 S0 R R R -> S0 S0 S0 S0",
                                                             "S1 S1 S1 S1 R R R -> S1 S1 S1 S1"};
  static constexpr std::array<std::string_view, 2> kMasterRules = {
      "S0 S0 S0 S0 S0 R R R -> S0 S0 S0 S0 S0", "S1 S1 S1 S1 S1 R R R -> S1 S1 S1 S1 S1"};
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

Cost cost(const OpCall& call) {
  const double elements = call.input(0).local_shape(call.mesh).num_elements();
  const bool noise = call.attrs.flag("stochastic_rounding");
  return {(noise ? 75 : 15) * elements, input_bytes(call), output_bytes(call)};
}

Layout layout(const OpCall& call) {
  Layout layout;
  for (int i = 0; i < (call.has_input(kMaster) ? 5 : 4); ++i) {
    layout.aliases.push_back({.output = i, .input = i});
  }
  return layout;
}

}  // namespace

const OpDef kAdamw = {.name = "adamw", .infer = infer, .cost = cost, .layout = layout};

std::vector<const OpDef*> adamw_ops() { return {&kAdamw}; }

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
                                  {"stream", static_cast<int64_t>(attrs.stream)},
                                  {"element_offset", attrs.element_offset}},
                                 names);
  return {outputs[0], outputs[1], outputs[2], outputs[3],
          inputs.master == kNoValue ? kNoValue : outputs[4]};
}

}  // namespace skein
