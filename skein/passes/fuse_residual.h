// Has the norm of a layer add what the layer before leaves: x = add(a, b), then rms_norm(x),
// becomes rms_norm(a, b), whose h is x. The same for layer_norm.
//
// Only where the norm follows the sum directly, in forward: not between stages of a pipeline.
// Memory   the same
// Numbers  the same bits: the norm rounds its sum as the sum did
// Saves    a kernel a layer, and one read and one write of [T, D]
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// Must run after take_stage and simplify, and before offload.
void fuse_residual(Graph& graph);

}  // namespace skein
