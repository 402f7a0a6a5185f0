#include "skein/checkpoint/format/boxes.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/checkpoint/format/cover_sum.h"

namespace skein {

std::optional<Box> intersect(const Box& a, const Box& b) {
  Box shared = a;
  for (int dim = 0; dim < a.shape.rank(); ++dim) {
    const int64_t start = std::max(a.offset[dim], b.offset[dim]);
    const int64_t end =
        std::min(a.offset[dim] + a.shape.dim(dim), b.offset[dim] + b.shape.dim(dim));
    if (start >= end) return std::nullopt;
    shared.offset[dim] = start;
    shared.shape.set_dim(dim, end - start);
  }
  return shared;
}

int64_t index_inside(const Box& box, const std::vector<int64_t>& position) {
  int64_t index = 0;
  for (int dim = 0; dim < box.shape.rank(); ++dim) {
    index = index * box.shape.dim(dim) + (position[dim] - box.offset[dim]);
  }
  return index;
}

namespace {

// The largest box that begins at element `at` of `box`, whose elements follow in order without a
// gap, and that ends before element `end`.
Box largest_box(const Box& box, int64_t at, int64_t end) {
  Box slice = box;
  int64_t inside = at, count = box.shape.num_elements();
  for (int dim = 0; dim < box.shape.rank(); ++dim) {
    count /= box.shape.dim(dim);  // elements per index of this dim
    const int64_t index = inside / count;
    inside %= count;
    slice.offset[dim] += index;
    slice.shape.set_dim(dim, 1);
    const int64_t fitting = std::min(box.shape.dim(dim) - index, (end - at) / count);
    if (inside == 0 && fitting > 0) {
      slice.shape.set_dim(dim, fitting);
      break;
    }
  }
  return slice;
}

}  // namespace

std::vector<Box> boxes_of_range(const Box& box, FlatRange range) {
  const int64_t elements = box.shape.num_elements();
  if (range.begin < 0 || range.count < 0 || range.begin > elements ||
      range.count > elements - range.begin) {
    fail(ErrorCode::kInvalid, "{} elements from {} on do not lie in {}, which has {}", range.count,
         range.begin, box.to_string(), elements);
  }
  std::vector<Box> boxes;
  for (int64_t at = range.begin; at < range.begin + range.count;) {
    boxes.push_back(largest_box(box, at, range.begin + range.count));
    at += boxes.back().shape.num_elements();
  }
  return boxes;
}

void for_each_run(const Box& source, const Box& target, const RunFunction& run) {
  const std::optional<Box> shared = intersect(source, target);
  if (!shared) return;
  // Dims [outer, rank) form one run: in all but the first of them both boxes have the same full
  // extent.
  int outer = std::max(0, shared->shape.rank() - 1);
  int64_t count = shared->shape.rank() == 0 ? 1 : shared->shape.dim(outer);
  while (outer > 0 && shared->shape.dim(outer) == source.shape.dim(outer) &&
         shared->shape.dim(outer) == target.shape.dim(outer)) {
    count *= shared->shape.dim(--outer);
  }
  std::vector<int64_t> position = shared->offset;
  while (true) {
    run(index_inside(source, position), index_inside(target, position), count);
    int dim = outer - 1;
    for (; dim >= 0; --dim) {
      if (++position[dim] < shared->offset[dim] + shared->shape.dim(dim)) break;
      position[dim] = shared->offset[dim];
    }
    if (dim < 0) return;
  }
}

namespace {

// For the message: two overlapping boxes, if they are found quickly.
std::string overlap_found(const Shape& global, std::vector<Box> boxes) {
  constexpr int64_t kMaxPairs = 1'000'000;
  std::sort(boxes.begin(), boxes.end(),
            [](const Box& a, const Box& b) { return a.offset < b.offset; });
  int64_t num_pairs = 0;
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = i + 1; j < boxes.size() && num_pairs++ < kMaxPairs; ++j) {
      if (global.rank() > 0 && boxes[j].offset[0] >= boxes[i].offset[0] + boxes[i].shape.dim(0)) {
        break;
      }
      if (intersect(boxes[i], boxes[j])) {
        return fmt::format("slices {} and {} overlap", boxes[i].to_string(), boxes[j].to_string());
      }
    }
  }
  return "";
}

}  // namespace

std::string tiling_error(const Shape& global, const std::vector<Box>& boxes) {
  int64_t covered = 0;
  CoverSum sum, whole;
  for (const Box& box : boxes) {
    if (!box.inside(global)) {
      return fmt::format("slice {} does not lie inside {}", box.to_string(), global.to_string());
    }
    if (__builtin_add_overflow(covered, box.shape.num_elements(), &covered)) {
      return "its slices hold more elements than can be counted";
    }
    sum.add(box.offset, box.shape.dims());
  }
  whole.add(Box::whole(global).offset, global.dims());
  // For a scalar the sum is the same whatever the number of boxes, so count them as well.
  if (sum == whole && covered == global.num_elements()) return "";
  std::string overlap = overlap_found(global, boxes);
  if (!overlap.empty()) return overlap;
  if (covered != global.num_elements()) {
    return fmt::format("its slices cover {} of {} elements", covered, global.num_elements());
  }
  return "its slices overlap and leave gaps";
}

std::optional<int64_t> checked_product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<int64_t> checked_bytes(const Shape& shape, int64_t element_bytes) {
  std::optional<int64_t> bytes = element_bytes;
  for (const int64_t size : shape.dims()) {
    if (bytes) bytes = checked_product(*bytes, size);
  }
  return bytes;
}

}  // namespace skein
