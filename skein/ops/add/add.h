// y = a + b, element by element.
//
// Formula       y[i] = a[i] + b[i]
// Shapes        a, b, y [rows, cols], one dtype: f32, bf16, or f64 (bins of exact sums)
// Accumulation  fp32, rounded once; f64 of f64
// Backward      da = db = dy; saves nothing
// Cost          1 flop an element; reads 2, writes 1
// Placement     S<d> S<d> -> S<d>, P P -> P
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kAdd;

ValueId add(Graph& graph, ValueId a, ValueId b, const std::string& name);

}  // namespace skein
