// Products on a unit of tiles: eight tiles of 16 rows of 64 bytes. A tile of A holds 16 rows of 16
// steps, one of B 16 steps of 16 columns; two of each and four of sums make 32 x 32 sums.
//
// Unit    zero<t>(), load<t>(data, row_bytes), store<t>(data, row_bytes), multiply<sum, a, b>():
//         the instructions (matmul_amx.cc), or what they do (tests/ops/emulated_tiles.h)
// Order   a multiply adds, for each sum, its 16 products of first elements in order, and those of
//         second elements, each from zero, and then both to the sum; subnormals count as zero
// Source  Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS
#pragma once

#include <cstring>

#include "skein/ops/matmul/matmul_kernel.h"

namespace skein::tiles {

inline constexpr int kRows = 16, kBytes = 64, kSteps = 16, kCols = 16;
inline constexpr int kTileRows = 2 * kRows, kPanelCols = 64;

// Sums of up to 32 rows and 32 columns. `rows` of A that are missing are not read.
template <typename Unit, bool kTwoRows>
void accumulate_half(const MatmulTiles& a, const uint32_t* b, int64_t steps, bool first,
                     float* sums) {
  constexpr int64_t kSumBytes = kPanelCols * 4, kColBytes = kPanelCols * 4;
  float* lower = sums + kRows * kPanelCols;
  if (first) {
    Unit::template zero<0>();
    Unit::template zero<1>();
    if constexpr (kTwoRows) {
      Unit::template zero<2>();
      Unit::template zero<3>();
    }
  } else {
    Unit::template load<0>(sums, kSumBytes);
    Unit::template load<1>(sums + kCols, kSumBytes);
    if constexpr (kTwoRows) {
      Unit::template load<2>(lower, kSumBytes);
      Unit::template load<3>(lower + kCols, kSumBytes);
    }
  }
  const char* rows = a.data;
  for (int64_t step = 0; step < steps; step += kSteps) {
    Unit::template load<4>(rows, a.row_bytes);
    Unit::template load<6>(b, kColBytes);
    Unit::template load<7>(b + kCols, kColBytes);
    Unit::template multiply<0, 4, 6>();
    Unit::template multiply<1, 4, 7>();
    if constexpr (kTwoRows) {
      Unit::template load<5>(rows + kRows * a.row_bytes, a.row_bytes);
      Unit::template multiply<2, 5, 6>();
      Unit::template multiply<3, 5, 7>();
    }
    rows += kSteps * a.step_bytes;
    b += kSteps * kPanelCols;
  }
  Unit::template store<0>(sums, kSumBytes);
  Unit::template store<1>(sums + kCols, kSumBytes);
  if constexpr (kTwoRows) {
    Unit::template store<2>(lower, kSumBytes);
    Unit::template store<3>(lower + kCols, kSumBytes);
  }
}

template <typename Unit>
void accumulate_whole(const MatmulTiles& a, bool two, const uint32_t* b, int64_t steps, bool first,
                      float* sums) {
  for (int col = 0; col < kPanelCols; col += 2 * kCols) {
    if (two) {
      accumulate_half<Unit, true>(a, b + col, steps, first, sums + col);
    } else {
      accumulate_half<Unit, false>(a, b + col, steps, first, sums + col);
    }
  }
}

// MatmulKernel::accumulate. The rows that the last tile lacks are taken as zero.
template <typename Unit>
void accumulate(const MatmulTiles& a, int rows, const uint32_t* b, int64_t steps, bool first,
                float* sums) {
  constexpr int64_t kMostSteps = 128;
  if (rows == kTileRows) return accumulate_whole<Unit>(a, true, b, steps, first, sums);
  alignas(64) char padded[kTileRows * kMostSteps * 4];
  const int all = rows <= kRows ? kRows : kTileRows;
  for (int64_t begin = 0; begin < steps; begin += kMostSteps) {
    const int64_t count = steps - begin < kMostSteps ? steps - begin : kMostSteps;
    for (int64_t block = 0; block < count; block += kSteps) {
      char* to = padded + block / kSteps * all * kBytes;
      for (int row = 0; row < rows; ++row) {
        const char* from = a.data + row * a.row_bytes + (begin + block) * a.step_bytes;
        std::memcpy(to + row * kBytes, from, kBytes);
      }
      std::memset(to + rows * kBytes, 0, static_cast<size_t>((all - rows) * kBytes));
    }
    const MatmulTiles copy{padded, 0, kBytes, all * kBytes / kSteps};
    accumulate_whole<Unit>(copy, all == kTileRows, b + begin * kPanelCols, count,
                           first && begin == 0, sums);
  }
}

}  // namespace skein::tiles
