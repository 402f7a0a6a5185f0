// Some rows of a matrix: the last tokens of prompts, when generating.
//
// Formula    y[r] = x[index[r]], each index clamped into [0, T)
// Shapes     x [T, D] f32 or bf16; index [R] i32; y [R, D]
// Backward   none
// Cost       memory only
// Placement  S1 R -> S1
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kTakeRows;  // (x, index) -> y

ValueId take_rows(Graph& graph, ValueId x, ValueId index, const std::string& name);

}  // namespace skein
