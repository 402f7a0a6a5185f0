// Sums of products on a unit of tiles: eight tiles of 16 rows of 64 bytes. A tile of A holds 16
// rows of 16 steps, one of B 16 steps of 16 columns, one of sums 16 x 16 fp32; a step is a pair of
// bf16 that are neighbours along the summed dim. Two of A, two of B and four of sums make 32 x 32.
//
// Unit    zero<t>(), load<t>(data, row_bytes), store<t>(data, row_bytes), multiply<sum, a, b>(),
//         between begin() and end(), which make all tiles of the thread whole ones and give them
//         back: the instructions (amx_unit.h), or what they do (tests/ops/emulated_tiles.h)
// Order   a multiply adds, for each sum, its 16 products of first elements in order, and those of
//         second elements, each from zero, and then both to the sum; subnormals count as zero
// Source  Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS
#pragma once

#include <cstdint>

namespace skein::tiles {

inline constexpr int kRows = 16, kBytes = 64, kSteps = 16, kCols = 16;

// A[rows, steps]: element (row, step) of block step / 16 lies at
// data + step / 16 * block_bytes + row * row_bytes + step % 16 * 4.
struct Left {
  const char* data = nullptr;
  int64_t row_bytes = 0, block_bytes = 0;
};

// B[steps, columns]: element (step, column) lies at data + step / 16 * block_words +
// step % 16 * row_words + column / 16 * tile_words + column % 16.
struct Right {
  const uint32_t* data = nullptr;
  int64_t row_words = 0, tile_words = 0, block_words = 0;

  Right at_column(int64_t column) const {
    Right right = *this;
    right.data += column / kCols * tile_words;
    return right;
  }
};
// One row of all columns after the other.
inline Right right_of_rows(const uint32_t* data, int64_t row_words) {
  return {data, row_words, kCols, kSteps * row_words};
}

// sums[16 or 32, 32] (+)= A B. `steps` is a multiple of 16; strides are of words.
template <typename Unit, bool kTwoRows>
inline void add_block(const Left& a, const Right& right, int64_t steps, bool first, float* sums,
                      int64_t sum_stride) {
  const int64_t sum_bytes = sum_stride * 4, b_bytes = right.row_words * 4;
  float* lower = sums + kRows * sum_stride;
  if (first) {
    Unit::template zero<0>();
    Unit::template zero<1>();
    if constexpr (kTwoRows) {
      Unit::template zero<2>();
      Unit::template zero<3>();
    }
  } else {
    Unit::template load<0>(sums, sum_bytes);
    Unit::template load<1>(sums + kCols, sum_bytes);
    if constexpr (kTwoRows) {
      Unit::template load<2>(lower, sum_bytes);
      Unit::template load<3>(lower + kCols, sum_bytes);
    }
  }
  const char* rows = a.data;
  const uint32_t* b = right.data;
  for (int64_t step = 0; step < steps; step += kSteps) {
    Unit::template load<4>(rows, a.row_bytes);
    Unit::template load<6>(b, b_bytes);
    Unit::template load<7>(b + right.tile_words, b_bytes);
    Unit::template multiply<0, 4, 6>();
    Unit::template multiply<1, 4, 7>();
    if constexpr (kTwoRows) {
      Unit::template load<5>(rows + kRows * a.row_bytes, a.row_bytes);
      Unit::template multiply<2, 5, 6>();
      Unit::template multiply<3, 5, 7>();
    }
    rows += a.block_bytes;
    b += right.block_words;
  }
  Unit::template store<0>(sums, sum_bytes);
  Unit::template store<1>(sums + kCols, sum_bytes);
  if constexpr (kTwoRows) {
    Unit::template store<2>(lower, sum_bytes);
    Unit::template store<3>(lower + kCols, sum_bytes);
  }
}

// The same for any number of rows, where the summed dim takes kDepth tiles: those of B stay for all
// rows.
template <typename Unit, int kDepth>
inline void add_columns(int64_t rows, const Left& a, const Right& right, bool first, float* sums,
                        int64_t sum_stride) {
  static_assert(kDepth == 1 || kDepth == 2);
  const int64_t sum_bytes = sum_stride * 4, b_bytes = right.row_words * 4;
  const uint32_t* b = right.data;
  Unit::template load<4>(b, b_bytes);
  Unit::template load<5>(b + right.tile_words, b_bytes);
  if constexpr (kDepth == 2) {
    Unit::template load<6>(b + right.block_words, b_bytes);
    Unit::template load<7>(b + right.block_words + right.tile_words, b_bytes);
  }
  for (int64_t row = 0; row < rows; row += kRows, sums += kRows * sum_stride) {
    const char* from = a.data + row * a.row_bytes;
    if (first) {
      Unit::template zero<0>();
      Unit::template zero<1>();
    } else {
      Unit::template load<0>(sums, sum_bytes);
      Unit::template load<1>(sums + kCols, sum_bytes);
    }
    Unit::template load<2>(from, a.row_bytes);
    Unit::template multiply<0, 2, 4>();
    Unit::template multiply<1, 2, 5>();
    if constexpr (kDepth == 2) {
      Unit::template load<3>(from + a.block_bytes, a.row_bytes);
      Unit::template multiply<0, 3, 6>();
      Unit::template multiply<1, 3, 7>();
    }
    Unit::template store<0>(sums, sum_bytes);
    Unit::template store<1>(sums + kCols, sum_bytes);
  }
}

// The same for any number of rows, of which all up to a multiple of 16 are there, and of columns, a
// multiple of 32.
template <typename Unit>
void add_product(int64_t rows, int64_t cols, const Left& a, const Right& b, int64_t steps,
                 bool first, float* sums, int64_t sum_stride) {
  for (int64_t col = 0; col < cols; col += 2 * kCols) {
    const Right right = b.at_column(col);
    if (steps == kSteps || steps == 2 * kSteps) {
      const auto add = steps == kSteps ? add_columns<Unit, 1> : add_columns<Unit, 2>;
      add(rows, a, right, first, sums + col, sum_stride);
      continue;
    }
    for (int64_t row = 0; row < rows; row += 2 * kRows) {
      const Left part{a.data + row * a.row_bytes, a.row_bytes, a.block_bytes};
      float* to = sums + row * sum_stride + col;
      if (rows - row > kRows) {
        add_block<Unit, true>(part, right, steps, first, to, sum_stride);
      } else {
        add_block<Unit, false>(part, right, steps, first, to, sum_stride);
      }
    }
  }
}

}  // namespace skein::tiles
