#include <algorithm>
#include <limits>

#include "skein/ops/muon/muon.h"
#include "skein/ops/philox_stablehlo.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

Tensor scalar(const Tensor& x) { return reshape(x, {}); }

std::vector<Tensor> momentum(const RuleCall& call) {
  const LocalPart part(call, call.outputs[0].dims);
  const double momentum = call.constants().real("momentum");
  const Tensor g = call.inputs[0] * scalar(call.inputs[2]);
  Tensor m = to_f32(call.inputs[1]);
  m = m + (1 - momentum) * (g - m);
  const Tensor d = g + momentum * (m - g);

  const Tensor gradient = keeps_gradient(call.constants())
                              ? call.inputs[0]
                              : call.to.constant(Element::kF32, 0, call.outputs[0].dims);
  const bool is_noisy = call.outputs[1].element == Element::kBF16;
  std::vector<Tensor> outputs = {
      gradient,
      is_noisy ? round_to_bf16(m, part.words(RandomPurpose::kMomentRounding, call.inputs[3])) : m,
      call.rounded(2, d)};
  for (Tensor& output : outputs) output = part.without_padding(output);
  return outputs;
}

std::vector<Tensor> apply(const RuleCall& call) {
  const Attrs& attrs = call.constants();
  const LocalPart part(call, call.outputs[0].dims);
  const bool has_master = call.has_input(2);
  const Tensor learning_rate = to_f64(scalar(call.inputs[3]));
  const Tensor decay = to_f32(1.0 - learning_rate * attrs.real("weight_decay"));
  const Tensor step_size = to_f32(learning_rate * attrs.real("update_scale"));
  Tensor w = has_master ? call.inputs[2] : to_f32(part.cut(call.inputs[0]));
  w = w * decay - step_size * to_f32(call.inputs[1]);

  const bool is_noisy =
      call.outputs[0].element == Element::kBF16 && !has_master && attrs.flag("stochastic_rounding");
  std::vector<Tensor> outputs = {
      is_noisy ? round_to_bf16(w, part.words(RandomPurpose::kStochasticRounding, call.inputs[4]))
               : call.rounded(0, w)};
  if (has_master) outputs.push_back(w);
  for (Tensor& output : outputs) output = part.without_padding(output);
  return outputs;
}

// max(|d|, 1e-7), f32[]; NaN where d is not finite.
Tensor norm_of(const Tensor& d) {
  const Tensor wide = to_f64(d);
  const Tensor squares = sum(wide * wide, {0, 1});
  const Tensor nan = d.function().constant(Element::kF64, std::numeric_limits<double>::quiet_NaN());
  const Tensor norm = sqrt(select(is_finite(squares), squares, nan));
  return to_f32(maximum(norm, NewtonSchulz::kLeastNorm));
}

// One step of Newton and Schulz. A and b A + c A A are symmetric, so that either may stand for its
// transpose.
Tensor iterate(const Tensor& x) {
  const Element element = x.element();
  const bool is_tall = x.dim(0) > x.dim(1);
  const Tensor gram = is_tall ? matmul_tn(x, x, element) : matmul_nt(x, x, element);
  const Tensor square = matmul_nt(gram, gram);
  const Tensor polynomial =
      convert(to_f32(gram) * NewtonSchulz::kB + square * NewtonSchulz::kC, element);
  const Tensor product = is_tall ? matmul_nt(x, polynomial) : matmul_nn(polynomial, x);
  return convert(to_f32(x) * NewtonSchulz::kA + product, element);
}

// By replica. Without the attr a rank is the owner.
std::vector<int64_t> owners(const RuleCall& call) {
  std::vector<int64_t> owners;
  for (const Attrs* one : call.attrs) {
    owners.push_back(!one->has("is_owner") || one->flag("is_owner") ? 1 : 0);
  }
  return owners;
}

// All replicas run one text, so that those which are not the owner compute as well.
std::vector<Tensor> orthogonalize(const RuleCall& call) {
  const Tensor& d = call.inputs[0];
  const std::vector<int64_t> is_owner = owners(call);
  const int64_t num_owners = std::count(is_owner.begin(), is_owner.end(), 1);
  if (num_owners == 0) return {call.to.constant(d.element(), 0, d.dims())};
  const Tensor x = call.rounded(0, to_f32(d) / norm_of(d));
  const Tensor orthogonal =
      call.to.repeat(NewtonSchulz::kSteps, {x},
                     [](const Tensor&, const std::vector<Tensor>& carried) -> std::vector<Tensor> {
                       return {iterate(carried[0])};
                     })[0];
  if (num_owners == call.num_replicas()) return {orthogonal};
  const Tensor table = call.to.words(Element::kI32, is_owner, {call.num_replicas()});
  const Tensor mine =
      scalar(dynamic_slice(table, {convert(call.to.replica_id(), Element::kI32)}, {1}));
  return {select(compare(mine, Compare::kEqual, 1), orthogonal, call.to.constant(d.element(), 0))};
}

}  // namespace

void add_muon_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["muon_momentum"] = {momentum, {"stream"}};
  rules["orthogonalize"] = orthogonalize;
  rules["muon_apply"] = {apply, {"stream"}};
}

}  // namespace skein
