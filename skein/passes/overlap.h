// Communication beside computation: collectives of the update become a start and a wait.
//
//   gradient sums     start in the backward phase, as soon as the last gradient of the bucket is
//                     there, with the last micro-batch alone (`last_only`); two buckets at most are
//                     under way, then the oldest is waited for, the last ones in the update. Only
//                     where a rank hosts one virtual rank: else the tree of its own comes first
//   updated weights   start when the bucket is updated; waited for after the next bucket is
//
// Memory   what a bucket's sum receives lives from start to wait: (n - 1) / n of two buckets
// Cost     the same bytes; the tree of the sum is added in the wait
// Source   Li et al., arXiv:2006.15704 (buckets)
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// After append_update and simplify. `early_sums`: gradient sums may start in the backward phase.
void overlap(Graph& graph, bool early_sums);

}  // namespace skein
