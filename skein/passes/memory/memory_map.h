// A model of what every byte of a program's arenas holds: rectangles of bytes and who wrote them.
//
// Approximations  only between rectangles of different strides, and on the strict side: a write
//                 removes more, and a read finds less, than is there, so that no overwritten value
//                 goes unnoticed
// Cost            O(log n) for each read and write, plus the rectangles that it overlaps
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "skein/ir/program.h"

namespace skein {

// Rows of bytes at a stride, in an arena.
struct ByteRect {
  Arena arena = Arena::kWorkspace;
  int64_t begin = 0;
  int64_t rows = 0;
  int64_t row_bytes = 0;
  int64_t stride = 0;  // bytes from one row to the next; one row: row_bytes

  // Rows without gaps are merged into one row.
  static ByteRect of(Arena arena, int64_t begin, int64_t rows, int64_t row_bytes, int64_t stride);
  // The bytes of an operand; empty if it is absent.
  static ByteRect of(const Operand& operand, int64_t slot);

  bool empty() const { return rows == 0 || row_bytes == 0; }
  int64_t end() const { return begin + (rows - 1) * stride + row_bytes; }
  bool operator==(const ByteRect&) const = default;
};

// Whether a byte may be in both; false is certain.
bool may_overlap(const ByteRect& a, const ByteRect& b);
// The intersection; nothing where it is empty or not a rectangle.
std::optional<ByteRect> common(const ByteRect& a, const ByteRect& b);
// `rects` without the bytes of `taken`. Where strides differ, `at_least` removes all bytes that may
// be in `taken`, otherwise only those that certainly are.
std::vector<ByteRect> without(const std::vector<ByteRect>& rects, const ByteRect& taken,
                              bool at_least);

class MemoryMap {
 public:
  using Writer = int64_t;
  struct Content {
    ByteRect rect;
    Writer writer;
  };

  void write(const ByteRect& rect, Writer writer);
  // The first bytes of `rect` that `writer` did not write or that were overwritten since; nothing
  // if all are as it left them.
  std::optional<ByteRect> missing(const ByteRect& rect, Writer writer) const;
  // The writer of the bytes in `rect`; of several, the first.
  std::optional<Writer> writer_in(const ByteRect& rect) const;
  void clear(Arena arena) { cells_[static_cast<size_t>(arena)].clear(); }

 private:
  // Contents whose spans overlap, such as columns of one matrix.
  struct Cell {
    int64_t end = 0;
    std::vector<Content> contents;
  };
  using Cells = std::map<int64_t, Cell>;  // by begin; cells do not overlap

  Cells& cells(const ByteRect& rect) { return cells_[static_cast<size_t>(rect.arena)]; }
  void put(const Content& content);
  template <typename Visit>
  void visit(const ByteRect& rect, const Visit& visit) const;

  std::array<Cells, kNumArenas> cells_;
};

}  // namespace skein
