#include "skein/ops/adamw/adamw.h"
#include "skein/ops/philox_stablehlo.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

constexpr size_t kMaster = 4;

Tensor scalar(const Tensor& x) { return reshape(x, {}); }

// 1 - beta^step, f64[]
Tensor bias_correction(double beta, const Tensor& step) {
  return 1.0 - power(step.function().constant(Element::kF64, beta), to_f64(scalar(step)));
}

// The update and its numbers, in fp32.
struct Update {
  Tensor m, v, w;

  Update(const RuleCall& call, const LocalPart& part) {
    const Attrs& attrs = call.constants();
    const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2");
    const Tensor learning_rate = to_f64(scalar(call.inputs[6]));
    const Tensor& step = call.inputs[7];
    const Tensor decay = to_f32(1.0 - learning_rate * attrs.real("weight_decay"));
    const Tensor step_size = to_f32(learning_rate / bias_correction(beta1, step));
    const Tensor inverse_root_bc2 = to_f32(1.0 / sqrt(bias_correction(beta2, step)));

    const Tensor g = call.inputs[1] * scalar(call.inputs[5]);
    m = to_f32(call.inputs[2]);
    v = to_f32(call.inputs[3]);
    w = call.has_input(kMaster) ? call.inputs[kMaster] : to_f32(part.cut(call.inputs[0]));
    m = m + (1 - beta1) * (g - m);
    v = beta2 * v + (1 - beta2) * g * g;
    w = w * decay - step_size * (m / (sqrt(v) * inverse_root_bc2 + attrs.real("epsilon")));
  }
};

bool has_noisy_weight(const RuleCall& call) {
  return call.outputs[0].element == Element::kBF16 && !call.has_input(kMaster) &&
         call.constants().flag("stochastic_rounding");
}

std::vector<Tensor> update(const RuleCall& call) {
  const LocalPart part(call, call.outputs[1].dims);
  const Update u(call, part);
  const Tensor& step = call.inputs[7];
  std::vector<Tensor> outputs;
  outputs.push_back(has_noisy_weight(call)
                        ? round_to_bf16(u.w, part.words(RandomPurpose::kStochasticRounding, step))
                        : call.rounded(0, u.w));
  outputs.push_back(keeps_gradient(call.constants())
                        ? call.inputs[1]
                        : call.to.constant(Element::kF32, 0, call.outputs[1].dims));
  if (call.outputs[2].element == Element::kBF16) {
    const Tensor words = part.words(RandomPurpose::kMomentRounding, step);
    outputs.push_back(round_to_bf16(u.m, words));
    outputs.push_back(round_to_bf16(u.v, words >> 16));
  } else {
    outputs.insert(outputs.end(), {u.m, u.v});
  }
  if (call.has_input(kMaster)) outputs.push_back(u.w);
  for (Tensor& output : outputs) output = part.without_padding(output);
  return outputs;
}

}  // namespace

void add_adamw_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["adamw"] = {update, {"stream"}};
}

}  // namespace skein
