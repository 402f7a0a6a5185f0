// From placed mathematics to what a rank really runs: redistributions over axes of size 1 vanish,
// and so do nodes that nothing reads.
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void lower(Graph& graph);

}  // namespace skein
