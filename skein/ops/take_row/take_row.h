// One row of a matrix: the last token of a prompt, when generating.
//
// Formula    y[0] = x[index], the index clamped into [0, T)
// Shapes     x [T, D] f32 or bf16; index [1] i32; y [1, D]
// Backward   none
// Cost       memory only
// Placement  S1 R -> S1
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kTakeRow;  // (x, index) -> y

ValueId take_row(Graph& graph, ValueId x, ValueId index, const std::string& name);

}  // namespace skein
