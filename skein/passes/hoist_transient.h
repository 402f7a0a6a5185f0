// Moves the backward nodes that read a transient value (a chunk of logits) into the forward phase,
// right behind the nodes that produce it: so one chunk is alive at a time, and the full logits
// never exist. This is why the loss must be a plain sum: its gradient is known before backward
// begins.
#pragma once

#include "skein/ir/graph.h"

namespace skein {

void hoist_transient(Graph& graph);

}  // namespace skein
