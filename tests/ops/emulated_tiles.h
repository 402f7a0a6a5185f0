// What the instructions of a tile unit do (ops/simd/tiles.h), in portable C++: kernels run on it
// where there is none, and must give the same bits where there is one.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "skein/ops/simd/tiles.h"

namespace skein::test {

class EmulatedTiles {
 public:
  template <int kTile>
  static void zero() {
    std::memset(tile(kTile), 0, sizeof(Tile));
  }
  template <int kTile>
  static void load(const void* from, int64_t row_bytes) {
    for (int row = 0; row < tiles::kRows; ++row) {
      std::memcpy(tile(kTile)[row], static_cast<const char*>(from) + row * row_bytes,
                  tiles::kBytes);
    }
  }
  template <int kTile>
  static void store(void* to, int64_t row_bytes) {
    for (int row = 0; row < tiles::kRows; ++row) {
      std::memcpy(static_cast<char*>(to) + row * row_bytes, tile(kTile)[row], tiles::kBytes);
    }
  }
  template <int kSum, int kA, int kB>
  static void multiply() {
    for (int row = 0; row < tiles::kRows; ++row) {
      for (int col = 0; col < tiles::kCols; ++col) {
        float first = 0, second = 0;
        for (int step = 0; step < tiles::kSteps; ++step) {
          const uint32_t a = tile(kA)[row][step], b = tile(kB)[step][col];
          first = add_product(first, a << 16, b << 16);
          second = add_product(second, a & 0xffff0000u, b & 0xffff0000u);
        }
        uint32_t& sum = tile(kSum)[row][col];
        const float both = without_subnormal(first + second);
        const float before = without_subnormal(std::bit_cast<float>(sum));
        sum = std::bit_cast<uint32_t>(without_subnormal(before + both));
      }
    }
  }

 private:
  using Tile = uint32_t[tiles::kRows][tiles::kBytes / 4];

  static uint32_t (*tile(int index))[tiles::kBytes / 4] {
    alignas(64) static thread_local Tile all[8];
    return all[index];
  }
  static float without_subnormal(float value) {
    return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
  }
  static float add_product(float sum, uint32_t a, uint32_t b) {
    const float product_a = without_subnormal(std::bit_cast<float>(a));
    const float product_b = without_subnormal(std::bit_cast<float>(b));
    return without_subnormal(std::fma(product_a, product_b, sum));
  }
};

}  // namespace skein::test
