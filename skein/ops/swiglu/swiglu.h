// The gated activation of the MLP.
//
// Formula       y = silu(gate) up, silu(g) = g / (1 + e^-g)
// Derivative    s = 1 / (1 + e^-gate)
//               dup = dy gate s,  dgate = dy up s (1 + gate (1 - s))
// Shapes        gate, up, y [T, F], one dtype (f32 or bf16)
// Accumulation  fp32, rounded once
// Backward      saves gate and up
// Cost          about 20 flops an element forward, 30 backward; memory-bound
// Placement     S0 S0 -> S0, S1 S1 -> S1
// Source        Shazeer, arXiv:2002.05202
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// With {largest} both have one more output (skein/ops/largest.h).
extern const OpDef kSwiglu;          // (gate, up) -> y
extern const OpDef kSwigluBackward;  // (dy, gate, up) -> (dgate, dup)

ValueId swiglu(Graph& graph, ValueId gate, ValueId up, const std::string& name);

struct SwigluBackward {
  ValueId dgate, dup;
};
SwigluBackward swiglu_backward(Graph& graph, ValueId dy, ValueId gate, ValueId up,
                               const std::string& dgate_name, const std::string& dup_name);

}  // namespace skein
