// The gated activation of an MLP whose gate is gelu.
//
// Formula       y = gelu(gate) up, with gelu of skein/ops/gelu/gelu.h, in its form {approximate}
// Derivative    dup = dy gelu(gate),  dgate = dy up gelu'(gate)
// Shapes        gate, up, y [T, F], one dtype (f32 or bf16)
// Accumulation  fp32, rounded once
// Backward      saves gate and up
// Cost          about 30 flops an element forward, 40 backward; memory-bound
// Placement     S0 S0 -> S0, S1 S1 -> S1
// Errors        those of gelu
// Source        Shazeer, arXiv:2002.05202; the MLPs of ModernBERT (exact) and Gemma (approximate)
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// With {largest} both have one more output (skein/ops/largest.h).
extern const OpDef kGeglu;          // (gate, up) {approximate} -> y
extern const OpDef kGegluBackward;  // (dy, gate, up) {approximate} -> (dgate, dup)

ValueId geglu(Graph& graph, ValueId gate, ValueId up, bool approximate, const std::string& name);

struct GegluBackward {
  ValueId dgate, dup;
};
GegluBackward geglu_backward(Graph& graph, ValueId dy, ValueId gate, ValueId up, bool approximate,
                             const std::string& dgate_name, const std::string& dup_name);

}  // namespace skein
