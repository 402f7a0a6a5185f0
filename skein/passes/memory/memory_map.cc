#include "skein/passes/memory/memory_map.h"

#include <algorithm>

namespace skein {
namespace {

// Two rectangles expressed with a common stride; nothing where they have none.
struct Aligned {
  int64_t stride;
  int64_t rows_a, row_bytes_a, rows_b, row_bytes_b;
  int64_t row, col;  // of b, in rows and columns of a; col may be negative
};
std::optional<Aligned> align(const ByteRect& a, const ByteRect& b) {
  Aligned both{a.stride, a.rows, a.row_bytes, b.rows, b.row_bytes, 0, 0};
  if (a.rows == 1 && b.rows == 1) {  // intervals
    both.col = b.begin - a.begin;
    return both;
  }
  if (a.stride != b.stride) {
    if (a.rows == 1 && a.row_bytes <= b.stride) {
      both.stride = b.stride;
    } else if (!(b.rows == 1 && b.row_bytes <= a.stride)) {
      return std::nullopt;
    }
  }
  const int64_t apart = b.begin - a.begin;
  both.row = apart / both.stride - (apart % both.stride < 0 ? 1 : 0);
  both.col = apart - both.row * both.stride;
  if (both.col + b.row_bytes > both.stride) {  // b begins left of a's columns, one row further down
    if (both.col < a.row_bytes) return std::nullopt;
    both.col -= both.stride;
    both.row += 1;
  }
  return both;
}

bool spans_overlap(const ByteRect& a, const ByteRect& b) {
  return a.arena == b.arena && !a.empty() && !b.empty() && a.begin < b.end() && b.begin < a.end();
}

struct CommonRanges {
  int64_t first_row, last_row, first_col, last_col;  // half-open, in rows and columns of a
  bool empty() const { return first_row >= last_row || first_col >= last_col; }
};
CommonRanges common_ranges(const Aligned& both) {
  return {std::max<int64_t>(0, both.row), std::min(both.rows_a, both.row + both.rows_b),
          std::max<int64_t>(0, both.col), std::min(both.row_bytes_a, both.col + both.row_bytes_b)};
}

ByteRect part(const ByteRect& a, int64_t stride, int64_t row, int64_t rows, int64_t col,
              int64_t row_bytes) {
  return ByteRect::of(a.arena, a.begin + row * stride + col, rows, row_bytes, stride);
}

void add(std::vector<ByteRect>& rects, const ByteRect& rect) {
  if (!rect.empty()) rects.push_back(rect);
}

// Removes from `a` whatever the span of `b` touches, gaps included: whole rows if `a` has several.
void take_rows(const ByteRect& a, const ByteRect& b, std::vector<ByteRect>& left) {
  const int64_t before = std::clamp((b.begin - a.begin) / a.stride, int64_t{0}, a.rows);
  const int64_t behind =
      std::clamp((b.end() - a.begin + a.stride - 1) / a.stride, int64_t{0}, a.rows);
  if (a.rows == 1) {
    add(left, part(a, a.stride, 0, 1, 0, std::max<int64_t>(0, b.begin - a.begin)));
    add(left, part(a, a.stride, 0, 1, std::min(a.row_bytes, b.end() - a.begin),
                   std::max<int64_t>(0, a.end() - b.end())));
    return;
  }
  add(left, part(a, a.stride, 0, before, 0, a.row_bytes));
  add(left, part(a, a.stride, behind, a.rows - behind, 0, a.row_bytes));
}

void subtract(const ByteRect& a, const ByteRect& b, bool at_least, std::vector<ByteRect>& left) {
  if (!spans_overlap(a, b)) return left.push_back(a);
  const auto both = align(a, b);
  if (!both) {
    const bool covers = b.rows == 1 && b.begin <= a.begin && a.end() <= b.end();
    if (covers) return;
    return at_least ? take_rows(a, b, left) : left.push_back(a);
  }
  const CommonRanges in = common_ranges(*both);
  if (in.empty()) return left.push_back(a);
  const int64_t stride = both->stride, rows = in.last_row - in.first_row;
  add(left, part(a, stride, 0, in.first_row, 0, a.row_bytes));
  add(left, part(a, stride, in.last_row, a.rows - in.last_row, 0, a.row_bytes));
  add(left, part(a, stride, in.first_row, rows, 0, in.first_col));
  add(left, part(a, stride, in.first_row, rows, in.last_col, a.row_bytes - in.last_col));
}

}  // namespace

ByteRect ByteRect::of(Arena arena, int64_t begin, int64_t rows, int64_t row_bytes, int64_t stride) {
  if (rows <= 0 || row_bytes <= 0) return {arena, begin, 0, 0, 1};
  if (rows > 1 && row_bytes == stride) {
    row_bytes *= rows;
    rows = 1;
  }
  return {arena, begin, rows, row_bytes, rows == 1 ? row_bytes : stride};
}

ByteRect ByteRect::of(const Operand& operand, int64_t slot) {
  const int64_t size = size_of(operand.dtype);
  const int64_t begin = operand.offset_bytes + slot * operand.slot_bytes;
  if (!operand.present()) return of(operand.arena, begin, 0, 0, 1);
  return of(operand.arena, begin, operand.shape.rows(), operand.shape.cols() * size,
            operand.row_stride * size);
}

bool may_overlap(const ByteRect& a, const ByteRect& b) {
  if (!spans_overlap(a, b)) return false;
  const auto both = align(a, b);
  return !both || !common_ranges(*both).empty();
}

std::optional<ByteRect> common(const ByteRect& a, const ByteRect& b) {
  if (!spans_overlap(a, b)) return std::nullopt;
  const auto both = align(a, b);
  if (!both) return std::nullopt;
  const CommonRanges in = common_ranges(*both);
  if (in.empty()) return std::nullopt;
  return part(a, both->stride, in.first_row, in.last_row - in.first_row, in.first_col,
              in.last_col - in.first_col);
}

std::vector<ByteRect> without(const std::vector<ByteRect>& rects, const ByteRect& taken,
                              bool at_least) {
  std::vector<ByteRect> left;
  for (const ByteRect& rect : rects) subtract(rect, taken, at_least, left);
  return left;
}

void MemoryMap::put(const Content& content) {
  Cells& cells = this->cells(content.rect);
  int64_t begin = content.rect.begin;
  Cell cell{content.rect.end(), {content}};
  auto at = cells.upper_bound(begin);
  if (at != cells.begin() && std::prev(at)->second.end > begin) --at;
  while (at != cells.end() && at->first < cell.end) {
    begin = std::min(begin, at->first);
    cell.end = std::max(cell.end, at->second.end);
    auto& contents = at->second.contents;
    cell.contents.insert(cell.contents.end(), contents.begin(), contents.end());
    at = cells.erase(at);
  }
  cells.emplace(begin, std::move(cell));
}

void MemoryMap::write(const ByteRect& rect, Writer writer) {
  if (rect.empty()) return;
  Cells& cells = this->cells(rect);
  std::vector<Content> left;
  auto at = cells.upper_bound(rect.begin);
  if (at != cells.begin() && std::prev(at)->second.end > rect.begin) --at;
  while (at != cells.end() && at->first < rect.end()) {
    for (const Content& content : at->second.contents) {
      if (content.rect == rect) continue;
      std::vector<ByteRect> rest;
      subtract(content.rect, rect, /*at_least=*/true, rest);
      for (const ByteRect& one : rest) left.push_back({one, content.writer});
    }
    at = cells.erase(at);
  }
  for (const Content& content : left) put(content);
  put({rect, writer});
}

template <typename Visit>
void MemoryMap::visit(const ByteRect& rect, const Visit& visit) const {
  const Cells& cells = cells_[static_cast<size_t>(rect.arena)];
  auto at = cells.upper_bound(rect.begin);
  if (at != cells.begin() && std::prev(at)->second.end > rect.begin) --at;
  for (; at != cells.end() && at->first < rect.end(); ++at) {
    for (const Content& content : at->second.contents) visit(content);
  }
}

std::optional<ByteRect> MemoryMap::missing(const ByteRect& rect, Writer writer) const {
  if (rect.empty()) return std::nullopt;
  std::vector<ByteRect> left = {rect};
  visit(rect, [&](const Content& content) {
    if (content.writer == writer) left = without(left, content.rect, /*at_least=*/false);
  });
  if (left.empty()) return std::nullopt;
  return left.front();
}

std::optional<MemoryMap::Writer> MemoryMap::writer_in(const ByteRect& rect) const {
  std::optional<Writer> found;
  visit(rect, [&](const Content& content) {
    if (!found && may_overlap(content.rect, rect)) found = content.writer;
  });
  return found;
}

}  // namespace skein
