// One step of a binary tree of gradient sums that become ready one after another: it sums a rank's
// virtual ranks in the canonical order. A level is a sum that waits for its neighbour.
//
// Formula       push:   level' = gradient,   gradient' = 0
//               merge:  gradient' = level + gradient;  level' is undefined until the next push
//               for each of many pairs
// Shapes        level_i, gradient_i f32, any shape, the same for both, packed
// Accumulation  fp32, the level (the earlier neighbour) first
// Backward      none
// Cost          push reads 1, writes 2; merge reads 2, writes 1, and 1 flop an element
// Placement     any; a level has that of its gradient
#pragma once

#include <vector>

#include "skein/ir/graph.h"

namespace skein {

// (level0, gradient0, level1, gradient1, ...) {mode} -> (level0', gradient0', ...), in place
extern const OpDef kFold;

enum class FoldMode { kPush, kMerge };

struct FoldPair {
  ValueId level, gradient;
};

// The outputs are named after the inputs.
std::vector<FoldPair> fold(Graph& graph, const std::vector<FoldPair>& pairs, FoldMode mode);

}  // namespace skein
