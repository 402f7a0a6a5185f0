// What the instructions of a tile unit do (ops/simd/tiles.h), in portable C++: kernels run on it
// where there is none, and must give the same bits where there is one.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "skein/ops/simd/tiles.h"

namespace skein::test {

class EmulatedTiles {
 public:
  static void begin() {
    state().begun = true;
    std::memset(state().tiles, 0xff, sizeof(state().tiles));  // NaN: nothing may count on zeros
  }
  static void end() { state().begun = false; }

  template <int kTile>
  static void zero() {
    std::memset(tile(kTile), 0, sizeof(Tile));
  }
  template <int kTile>
  static void load(const void* from, int64_t row_bytes) {
    Tile& to = tile(kTile);
    for (int row = 0; row < tiles::kRows; ++row) {
      std::memcpy(to[row], static_cast<const char*>(from) + row * row_bytes, tiles::kBytes);
    }
  }
  template <int kTile>
  static void store(void* to, int64_t row_bytes) {
    const Tile& from = tile(kTile);
    for (int row = 0; row < tiles::kRows; ++row) {
      std::memcpy(static_cast<char*>(to) + row * row_bytes, from[row], tiles::kBytes);
    }
  }
  template <int kSum, int kA, int kB>
  static void multiply() {
    const Tile &a = tile(kA), &b = tile(kB);
    Tile& sums = tile(kSum);
    float b_first[tiles::kSteps][tiles::kCols], b_second[tiles::kSteps][tiles::kCols];
    for (int step = 0; step < tiles::kSteps; ++step) {
      for (int col = 0; col < tiles::kCols; ++col) {
        b_first[step][col] = number(b[step][col] << 16);
        b_second[step][col] = number(b[step][col] & 0xffff0000u);
      }
    }
    for (int row = 0; row < tiles::kRows; ++row) {
      float first[tiles::kCols] = {}, second[tiles::kCols] = {};
      for (int step = 0; step < tiles::kSteps; ++step) {
        add_products(number(a[row][step] << 16), b_first[step], first);
        add_products(number(a[row][step] & 0xffff0000u), b_second[step], second);
      }
      for (int col = 0; col < tiles::kCols; ++col) {
        const float both = without_subnormal(first[col] + second[col]);
        const float sum = without_subnormal(number(sums[row][col]) + both);
        sums[row][col] = std::bit_cast<uint32_t>(sum);
      }
    }
  }

 private:
  using Tile = uint32_t[tiles::kRows][tiles::kBytes / 4];
  struct State {
    bool begun = false;
    alignas(64) Tile tiles[8] = {};
  };

  static State& state() {
    static thread_local State state;
    return state;
  }
  // An instruction outside of begin() and end() ends the program, as it would without emulation.
  static Tile& tile(int index) {
    if (!state().begun) {
      std::fputs("tiles are used that nobody has begun with\n", stderr);
      std::abort();
    }
    return state().tiles[index];
  }
  static float without_subnormal(float value) {
    return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
  }
  static float number(uint32_t bits) { return without_subnormal(std::bit_cast<float>(bits)); }
  // sums[i] += a b[i], rounded once: a product of bf16 that is a normal number is exact in fp32.
  static void add_products(float a, const float* b, float* sums) {
    for (int i = 0; i < tiles::kCols; ++i) {
      const float product = a * b[i];
      const bool exact = std::isnormal(product) || a == 0 || b[i] == 0;
      sums[i] = without_subnormal(exact ? sums[i] + product : std::fma(a, b[i], sums[i]));
    }
  }
};

}  // namespace skein::test
