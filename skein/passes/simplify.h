// Removes what a rank does not need to run: redistributions over axes of size 1, where every
// placement is Replicated, and nodes whose results nothing reads.
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void simplify(Graph& graph);

}  // namespace skein
