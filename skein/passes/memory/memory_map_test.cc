#include "skein/passes/memory/memory_map.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace skein {
namespace {

ByteRect rect(int64_t begin, int64_t rows, int64_t row_bytes, int64_t stride) {
  return ByteRect::of(Arena::kWorkspace, begin, rows, row_bytes, stride);
}

std::vector<bool> bytes_of(const std::vector<ByteRect>& rects, int64_t size) {
  std::vector<bool> bytes(static_cast<size_t>(size));
  for (const ByteRect& one : rects) {
    for (int64_t row = 0; row < one.rows; ++row) {
      for (int64_t col = 0; col < one.row_bytes; ++col) {
        bytes.at(static_cast<size_t>(one.begin + row * one.stride + col)) = true;
      }
    }
  }
  return bytes;
}

// Compares with sets of bytes, over all small rectangles.
TEST(ByteRects, AreSetsOfBytes) {
  constexpr int64_t kSize = 24;
  std::vector<ByteRect> all;
  for (const int64_t stride : {3, 4, 6}) {
    for (int64_t begin = 0; begin < 8; ++begin) {
      for (int64_t rows = 1; rows <= 3; ++rows) {
        for (int64_t row_bytes = 1; row_bytes <= stride; ++row_bytes) {
          const ByteRect one = rect(begin, rows, row_bytes, stride);
          if (one.end() <= kSize && std::find(all.begin(), all.end(), one) == all.end()) {
            all.push_back(one);
          }
        }
      }
    }
  }
  int64_t num_exact = 0, num_pairs = 0;
  for (const ByteRect& a : all) {
    const std::vector<bool> in_a = bytes_of({a}, kSize);
    for (const ByteRect& b : all) {
      const std::vector<bool> in_b = bytes_of({b}, kSize);
      const std::vector<bool> least = bytes_of(without({a}, b, /*at_least=*/true), kSize);
      const std::vector<bool> most = bytes_of(without({a}, b, /*at_least=*/false), kSize);
      const auto both = common(a, b);
      const std::vector<bool> in_both = both ? bytes_of({*both}, kSize) : std::vector<bool>(kSize);
      bool overlap = false, exact = true;
      for (size_t i = 0; i < kSize; ++i) {
        const bool left = in_a[i] && !in_b[i];
        overlap |= in_a[i] && in_b[i];
        exact &= least[i] == left && most[i] == left;
        ASSERT_LE(least[i], left) << "taken away too little";
        ASSERT_GE(most[i], left) << "taken away too much";
        ASSERT_LE(most[i], in_a[i]);
        ASSERT_LE(in_both[i], in_a[i] && in_b[i]);
      }
      ASSERT_GE(may_overlap(a, b), overlap);
      num_exact += exact;
      ++num_pairs;
    }
  }
  EXPECT_GT(num_exact, num_pairs / 2);
}

TEST(MemoryMap, KnowsWhatEachWriteLeftOfTheOthers) {
  MemoryMap memory;
  // Two groups of columns of a matrix with rows of 8 bytes.
  const ByteRect left = rect(0, 4, 3, 8), right = rect(3, 4, 5, 8);
  memory.write(left, 1);
  memory.write(right, 2);
  EXPECT_FALSE(memory.missing(left, 1));
  EXPECT_FALSE(memory.missing(right, 2));
  EXPECT_TRUE(memory.missing(rect(0, 1, 4, 4), 1));
  memory.write(rect(8, 2, 3, 8), 3);  // the middle rows of `left`
  EXPECT_EQ(memory.missing(left, 1), rect(8, 2, 3, 8));
  EXPECT_EQ(memory.writer_in(rect(8, 2, 3, 8)), 3);
  EXPECT_FALSE(memory.missing(rect(0, 1, 3, 3), 1));
  EXPECT_FALSE(memory.missing(rect(24, 1, 3, 3), 1));
  EXPECT_FALSE(memory.missing(right, 2));
  memory.write(rect(10, 1, 4, 4), 4);  // overlaps both, with another stride
  EXPECT_TRUE(memory.missing(right, 2));
  EXPECT_FALSE(memory.missing(rect(24, 1, 3, 3), 1));
  memory.clear(Arena::kWorkspace);
  EXPECT_TRUE(memory.missing(rect(24, 1, 3, 3), 1));
  EXPECT_FALSE(memory.writer_in(left));
}

}  // namespace
}  // namespace skein
