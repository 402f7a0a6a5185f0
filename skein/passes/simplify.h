// From placed mathematics to what a rank really runs: over an axis of size 1 every placement is
// Replicated, so redistributions over it vanish; and so do nodes that nothing reads.
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void simplify(Graph& graph);

}  // namespace skein
