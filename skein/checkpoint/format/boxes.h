// Geometry of boxes of one tensor (tensor/tensor_type.h): intersections, ranges, runs, tilings.
//
// Shapes   offset and shape have the tensor's rank; row-major. Rank 0 is one element.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/tensor/tensor_type.h"

namespace skein {

// The intersection; nothing if it is empty.
std::optional<Box> intersect(const Box& a, const Box& b);

// The row-major index within `box` of the element at `position` of the tensor.
int64_t index_inside(const Box& box, const std::vector<int64_t>& position);

// The boxes that make up a range of the elements of `box`, in the order of those elements: for a
// matrix the end of a row, whole rows, the beginning of a row; at most 2 rank - 1. None for an
// empty range. Throws Error{kInvalid} if the range leaves the box.
std::vector<Box> boxes_of_range(const Box& box, FlatRange range);

// Calls run(source_index, target_index, count) for the longest runs of elements that are contiguous
// in both boxes and together make up their intersection; indices count from each box's start.
using RunFunction = std::function<void(int64_t source_index, int64_t target_index, int64_t count)>;
void for_each_run(const Box& source, const Box& target, const RunFunction& run);

// Empty if the boxes, each inside `global`, cover it exactly once; otherwise what is wrong, for
// people. Cost: one pass if they do (cover_sum.h); otherwise a sort and at most 10^6 pairs of boxes
// for the message.
std::string tiling_error(const Shape& global, const std::vector<Box>& boxes);

// a * b where both are >= 0 and the product fits an int64_t.
std::optional<int64_t> checked_product(int64_t a, int64_t b);
// Elements of `shape` times `element_bytes`; nothing for a negative size or on overflow.
std::optional<int64_t> checked_bytes(const Shape& shape, int64_t element_bytes);

}  // namespace skein
