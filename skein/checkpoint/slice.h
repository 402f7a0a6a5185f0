// A box inside a tensor, and how the elements of two boxes of one tensor meet.
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

inline bool operator==(const FlatRange& a, const FlatRange& b) {
  return a.begin == b.begin && a.count == b.count;
}

struct Slice {
  std::vector<int64_t> offset;
  Shape shape;

  static Slice whole(const Shape& shape) {
    return {std::vector<int64_t>(static_cast<size_t>(shape.rank()), 0), shape};
  }
  static Slice of(const Box& box) { return {box.offset, box.shape}; }
  operator Box() const { return {offset, shape}; }  // NOLINT: the same, in the words of `tensor`

  // True if the box lies inside a tensor of shape `global` and every size is at least 1.
  bool inside(const Shape& global) const;
  std::string to_string() const;  // "[0:512, 128:256]"
  bool operator==(const Slice&) const = default;
};

// The box that both share; nothing where they do not meet.
std::optional<Slice> intersect(const Slice& a, const Slice& b);

// Which element of `box`, row by row, stands at `position` of the tensor.
int64_t index_inside(const Slice& box, const std::vector<int64_t>& position);

// The boxes that make up a range of the elements of `box`, in the order of those elements: for a
// matrix the end of a row, whole rows, the beginning of a row; at most 2 rank - 1. None for an
// empty range. Throws Error{kInvalid} where the range leaves the box.
std::vector<Slice> boxes_of_range(const Box& box, FlatRange range);

// Calls run(source_index, target_index, count) for the longest runs of elements that are contiguous
// in both boxes and together make up what they share; indices count elements from each box's start.
using RunFunction = std::function<void(int64_t source_index, int64_t target_index, int64_t count)>;
void for_each_run(const Slice& source, const Slice& target, const RunFunction& run);

// Empty if the boxes, each inside `global`, cover it exactly once; else what is wrong, for people.
// Cost: one pass where they do (cover_sum.h); where not, a sort and at most 10^6 pairs for the
// message.
std::string tiling_error(const Shape& global, const std::vector<Slice>& boxes);

// a * b where both are >= 0 and the product fits an int64_t.
std::optional<int64_t> checked_product(int64_t a, int64_t b);
// Elements of `shape` times `element_bytes`; nothing for a negative size or on overflow.
std::optional<int64_t> checked_bytes(const Shape& shape, int64_t element_bytes);

}  // namespace skein
