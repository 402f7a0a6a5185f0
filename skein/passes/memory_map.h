// What every byte of a program's arenas holds, on paper: rectangles of bytes and who wrote them.
//
// Approximations  only of rectangles of different strides: a write then takes away rather more, and
//                 a read finds rather less, than is there; so nothing that is damaged passes
// Cost            O(log n) and the rectangles that are met, for each read and write
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

  // Rows without gaps become one.
  static ByteRect of(Arena arena, int64_t begin, int64_t rows, int64_t row_bytes, int64_t stride);
  // What an operand touches; empty where it is absent.
  static ByteRect of(const Operand& operand, int64_t slot);

  bool empty() const { return rows == 0 || row_bytes == 0; }
  int64_t end() const { return begin + (rows - 1) * stride + row_bytes; }
  bool operator==(const ByteRect&) const = default;
};

// False only where no byte is in both.
bool may_overlap(const ByteRect& a, const ByteRect& b);
// The bytes of both; none where there are none or that is no rectangle.
std::optional<ByteRect> common(const ByteRect& a, const ByteRect& b);
// `rects` without the bytes of `taken`. Where strides differ: `at_least` takes away all that may be
// meant, else only what certainly is.
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
  // The first bytes of `rect` that `writer` has not written, or that were written over; none: all
  // are as it left them.
  std::optional<ByteRect> missing(const ByteRect& rect, Writer writer) const;
  // Whose bytes lie in `rect`; of several the first.
  std::optional<Writer> writer_in(const ByteRect& rect) const;
  void clear(Arena arena) { cells_[static_cast<size_t>(arena)].clear(); }

 private:
  // Contents whose spans overlap, as columns of one matrix do.
  struct Cell {
    int64_t end = 0;
    std::vector<Content> contents;
  };
  using Cells = std::map<int64_t, Cell>;  // by begin; they do not overlap

  Cells& cells(const ByteRect& rect) { return cells_[static_cast<size_t>(rect.arena)]; }
  void put(const Content& content);
  template <typename Visit>
  void visit(const ByteRect& rect, const Visit& visit) const;

  std::array<Cells, kNumArenas> cells_;
};

}  // namespace skein
