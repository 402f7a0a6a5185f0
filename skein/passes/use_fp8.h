// Makes the matrix products of the layers, forward and backward, use 8-bit operands
// (skein/ops/linear/fp8_operands.h). The head, attention and everything else stay as they are.
// linear_dw and linear_dx of the same gradients become linear_dx_dw, which rounds those once.
// The largest magnitude of what is rounded is a value (fp8_largest), found once for all readers, by
// the op that writes it where that can (skein/ops/largest.h).
// With `fast_accumulation` forward products have that attr.
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void use_fp8(Graph& graph, bool fast_accumulation);

}  // namespace skein
