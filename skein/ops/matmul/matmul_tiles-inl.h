// MatmulKernel::accumulate on a unit of tiles (ops/simd/tiles.h).
#pragma once

#include <cstring>

#include "skein/ops/matmul/matmul_kernel.h"
#include "skein/ops/simd/tiles.h"

namespace skein::tiles {

inline constexpr int kTileRows = 2 * kRows, kPanelCols = 64;

// A panel of B, tile by tile (pack_b_blocks).
inline Right panel_at(const uint32_t* panel, int64_t step) {
  return {panel + step * kPanelCols, kCols, kSteps * kCols, kSteps * kPanelCols};
}

// The rows that the last tile lacks are taken as zero, and are not read.
template <typename Unit>
void accumulate(const MatmulTiles& a, int rows, const uint32_t* b, int64_t steps, bool first,
                float* sums) {
  constexpr int64_t kMostSteps = 128;
  if (rows == kTileRows) {
    const Left whole{a.data, a.row_bytes, kSteps * a.step_bytes};
    return add_product<Unit>(rows, kPanelCols, whole, panel_at(b, 0), steps, first, sums,
                             kPanelCols);
  }
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
    add_product<Unit>(all, kPanelCols, {padded, kBytes, all * kBytes}, panel_at(b, begin), count,
                      first && begin == 0, sums, kPanelCols);
  }
}

}  // namespace skein::tiles
