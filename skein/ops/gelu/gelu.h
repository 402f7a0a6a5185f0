// The Gaussian error linear unit, an activation: x times a share of it that grows from 0 to 1.
//
// Formula       y = x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2, the normal distribution function
//               with {approximate}: y = x s(x), s(x) = (1 + tanh(v)) / 2 = 1 / (1 + e^-2v),
//               v = sqrt(2 / pi) (x + 0.044715 x^3)
// Derivative    dx = dy (Phi(x) + x phi(x)), phi(x) = e^(-x^2 / 2) / sqrt(2 pi)
//               with {approximate}: dx = dy (s + x s (1 - s) 2v'),
//               2v' = sqrt(2 / pi) (2 + 0.26829 x^2)
// Shapes        x, y [T, F], one dtype (f32 or bf16)
// Accumulation  fp32, rounded once
// Backward      saves x
// Cost          about 30 flops an element forward, 35 backward; memory-bound
// Placement     S0 -> S0, S1 -> S1
// Errors        f32 on a CPU: Phi to 1.5 ulp for x >= 0, to 6 ulp below and 0 below -13
//               (gelu_cpu_test.cc); s to a few ulp, and |2v| ulp more for x < 0
// Source        Hendrycks and Gimpel, arXiv:1606.08415; torch.nn.functional.gelu, whose
//               `approximate` is 'none' or 'tanh' (gelu_new, gelu_pytorch_tanh in transformers)
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// With {largest} both have one more output (skein/ops/largest.h).
extern const OpDef kGelu;          // (x) {approximate} -> y
extern const OpDef kGeluBackward;  // (dy, x) {approximate} -> dx

// False if the attr is absent.
bool is_approximate_gelu(const Attrs& attrs);

ValueId gelu(Graph& graph, ValueId x, bool approximate, const std::string& name);
ValueId gelu_backward(Graph& graph, ValueId dy, ValueId x, bool approximate,
                      const std::string& name);

}  // namespace skein
