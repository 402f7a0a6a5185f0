// The squared norm of many tensors, with the same bits however they are split over ranks.
//
// Formula       bins = exact sum (skein/base/numbers/exact_sum.h) over all x_i, and over the
//               segments of 1024 elements of the rank's part of each, of the segment's sum of
//               squares
// Shapes        x_i any shape, f32 or bf16, packed; bins f64[exact_sum::kBins]
// Accumulation  f64 within a segment, in a fixed order; then exact, in any order. A sum over ranks
//               adds bin by bin
// Backward      none
// Cost          2 flops an element; reads each once
// Placement     over each axis all x_i are Replicated, then so is the result; or all are split
//               (Flat or Sharded, in any mixture), then it is Partial. Over the axis
//               `pending_over`, if any, they are Replicated and the result is Partial: each rank
//               has tensors of its own, as pipeline stages do. The padding of a Flat part does not
//               count. Flat parts are whole segments: over a Flat axis the bins are those of the
//               whole
// Errors        kInvalid: a Partial x_i, whose sum must be complete before it is squared
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kSumSquares;  // (x1, x2, ...) {pending_over} -> bins

ValueId sum_squares(Graph& graph, const std::vector<ValueId>& values, const std::string& name,
                    std::string_view pending_over = "");

}  // namespace skein
