// Overlaps communication with computation: collectives of the update become a start and a wait.
//
//   gradient sums     start in the backward phase, as soon as the last gradient of the bucket is
//                     complete, with the last micro-batch only (`last_only`); sums over a further
//                     axis when that over the one before was waited for. At most two buckets of a
//                     chunk are under way over an axis: then the oldest is waited for; the last
//                     ones are waited for in the update. Only where a rank hosts one virtual rank:
//                     several must first be added by their own tree. These have the attr `early`
//   updated weights   start when the bucket is updated; waited for after the next bucket is, or
//                     where they are gathered over a further axis
//
// Memory   receive buffers of a bucket's sum, (n - 1) / n of it, live from start to wait; those of
//          sums that are waited for in the update, two a chunk and axis, have their place for good
// Cost     the same bytes on the wire; the terms of a sum are added in the wait, or where the next
//          bucket starts
// Source   Li et al., arXiv:2006.15704 (buckets)
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// Must run after append_update and simplify. `early_sums`: gradient sums may start in the backward
// phase.
void overlap(Graph& graph, bool early_sums);

}  // namespace skein
