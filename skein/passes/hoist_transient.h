// Moves the backward nodes that read a transient value (the logits of a token block) into the
// forward phase, next to the nodes that produce it, so that one block is alive at a time and the
// full logits never exist. This is why the loss must be a plain sum: its gradient is then known
// before backward begins.
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void hoist_transient(Graph& graph);

}  // namespace skein
