// Overlaps the collectives of the layers with computation: each becomes a start and a wait, where
// there is work to do in between.
//
//   weights, keys and    gathers of what lies ready when the program begins (ZeRO 3, and what
//   values ahead         backward gathers again): those of the next scope start when those of this
//                        one are used. Over two axes (ZeRO 3 with data and context ranks) over the
//                        inner one a scope earlier
//   gradients behind     backward computes the gradients of weights, for which nobody waits, while
//                        other collectives of the layers are under way: one product each, at most
//                        two products later than where they stood
//   sums of gradients    (ZeRO 2) are waited for when the next scope's start; those over the outer
//                        of two axes where that over the inner one starts
//
// Only gathers whose results lie without gaps, and sums of such terms, which are copied to results
// with gaps; sums in the head, whose logits must not live long, stay. Forward has nothing else to
// do while tensor and context ranks exchange activations. Where micro-batches run in pairs, which
// gives it something (passes/overlap/pair_programs.h), all that can be are split, also with nothing
// in between.
// Memory   gathers: one scope more. Products: what up to two of them read
// Numbers  the same bits: every sum keeps its order, and every gradient its terms
// Source   Rajbhandari et al., arXiv:1910.02054 (gathers ahead); Huang et al., "Breadth-first
//          computation scheduling", MLSys 2022, and Qi et al., arXiv:2401.10241 (gradients of
//          weights wait)
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// Must run after append_update and simplify, and before offload.
enum class SplitCollectives : bool { kHidden, kAll };
void overlap_layers(Graph& graph, SplitCollectives which = SplitCollectives::kHidden);

}  // namespace skein
