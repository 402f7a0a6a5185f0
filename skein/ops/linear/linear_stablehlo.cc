#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/fp8_stablehlo.h"
#include "skein/ops/linear/linear.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

using Tensors = std::vector<Tensor>;

size_t num_parts(const RuleCall& call) {
  return static_cast<size_t>(call.constants().integer("parts"));
}

// The inputs, rounded to 8 bits where the product is to see them so.
Tensors operands_of(const RuleCall& call, std::string_view op) {
  return is_fp8(call.constants()) ? fp8_operands(call, op) : call.inputs;
}

// y_i = x w_i^T + b_i
Tensors forward(const RuleCall& call) {
  const Tensors in = operands_of(call, "linear");
  const size_t parts = num_parts(call);
  const bool bias = call.constants().flag("bias");
  Tensors y;
  for (size_t i = 0; i < parts; ++i) {
    Tensor sum = matmul_nt(in[0], in[1 + i]);
    if (bias) sum = sum + as_rows(to_f32(in[1 + parts + i]), sum.dim(0));
    y.push_back(call.rounded(i, sum));
  }
  return y;
}

// sum_i dy_i w_i of operands dy_1..dy_n, w_1..w_n.
Tensor sum_of_products(const Tensors& in, size_t parts) {
  Tensor sum = matmul_nn(in[0], in[parts]);
  for (size_t i = 1; i < parts; ++i) sum = sum + matmul_nn(in[i], in[parts + i]);
  return sum;
}

// g_i (+)= dy_i^T x of operands that begin with dy_1..dy_n; g_1..g_n follow x.
void append_weight_gradients(const RuleCall& call, const Tensors& in, size_t x, Tensors& outputs) {
  const bool from_zero = is_from_zero(call.constants());
  for (size_t i = 0; i < num_parts(call); ++i) {
    const Tensor term = matmul_tn(in[i], in[x]);
    outputs.push_back(from_zero ? term : in[x + 1 + i] + term);
  }
}

Tensors dx(const RuleCall& call) {
  return {call.rounded(0, sum_of_products(operands_of(call, "linear_dx"), num_parts(call)))};
}

Tensors dw(const RuleCall& call) {
  Tensors g;
  append_weight_gradients(call, operands_of(call, "linear_dw"), num_parts(call), g);
  return g;
}

Tensors dx_dw(const RuleCall& call) {
  const Tensors in = operands_of(call, "linear_dx_dw");
  const size_t parts = num_parts(call);
  Tensors outputs = {call.rounded(0, sum_of_products(in, parts))};
  append_weight_gradients(call, in, 2 * parts, outputs);
  return outputs;
}

// h_i += column sums of dy_i
Tensors db(const RuleCall& call) {
  const size_t parts = num_parts(call);
  Tensors h;
  for (size_t i = 0; i < parts; ++i) {
    h.push_back(call.inputs[parts + i] + sum(to_f32(call.inputs[i]), {0}));
  }
  return h;
}

}  // namespace

void add_linear_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["linear"] = forward;
  rules["linear_dx"] = dx;
  rules["linear_dw"] = dw;
  rules["linear_dx_dw"] = dx_dw;
  rules["linear_db"] = db;
  rules["fp8_largest"] = fp8_largest_rule;
  rules["round_weights"] = round_weights_rule;
}

}  // namespace skein
