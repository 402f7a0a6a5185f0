// The squared norm of many tensors, the same bits however they are laid out over ranks.
//
// Formula       sum_squares: c_i[k] = sum of x_i[j]^2 over the k-th 64 Ki elements of
//               x_i, row-major
//               tree_sum: all chunks, in the order given, summed by a binary tree: neighbours
//               first, (c0 + c1) + (c2 + c3), an odd one out carried upwards
// Shapes        x_i any shape, f32 or bf16, packed; c_i f64[ceil(elements / 65536)]; sum f64[1]
// Accumulation  f64
// Backward      none
// Cost          2 flops an element; reads each once
// Placement     x_i S0 -> c_i S0 where every rank holds whole chunks; Replicated otherwise.
//               tree_sum takes Replicated chunks only
#pragma once

#include <vector>

#include "skein/ir/graph.h"

namespace skein {

inline constexpr int64_t kSumSquaresChunk = 65536;

extern const OpDef kSumSquares;  // (x1, x2, ...) -> (c1, c2, ...)
extern const OpDef kTreeSum;     // (c1, c2, ...) -> sum

std::vector<ValueId> sum_squares(Graph& graph, const std::vector<ValueId>& values,
                                 const std::vector<std::string>& names);
ValueId tree_sum(Graph& graph, const std::vector<ValueId>& chunks, const std::string& name);

}  // namespace skein
