#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "skein/base/error.h"
#include "skein/ops/matmul/matmul_tiles-inl.h"
#include "tests/ops/emulated_tiles.h"

namespace skein {
namespace {

// Pairs of bf16, any bits of which are numbers of at most 2^30; a few are zero or subnormal.
std::vector<uint32_t> pairs(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  const auto half = [&]() -> uint32_t {
    const uint32_t bits = random();
    if (bits % 37 == 0) return bits % 3 == 0 ? 0 : bits >> 25;
    const uint32_t exponent = 97 + (bits >> 8) % 60;
    return (bits & 0x807fu) | exponent << 7;
  };
  std::vector<uint32_t> words(static_cast<size_t>(count));
  for (uint32_t& word : words) word = half() | half() << 16;
  return words;
}

struct Operands {
  explicit Operands(int64_t steps)
      : steps(steps),
        a(pairs(tiles::kTileRows * steps, 1)),
        b(pairs(steps * tiles::kPanelCols, 2)) {}

  // A in place: `row_bytes` of steps a row.
  MatmulTiles in_place() const {
    return {reinterpret_cast<const char*>(a.data()), 0, steps * 4, 4};
  }
  // A as it is packed, in blocks of 16 steps.
  std::vector<uint32_t> packed() const {
    std::vector<uint32_t> words(a.size());
    for (int64_t row = 0; row < tiles::kTileRows; ++row) {
      for (int64_t step = 0; step < steps; ++step) {
        const int64_t block = step / 16 * tiles::kTileRows * 16;
        words[block + row * 16 + step % 16] = a[row * steps + step];
      }
    }
    return words;
  }

  uint32_t b_at(int64_t step, int64_t col) const {
    return b[step / 16 * 16 * tiles::kPanelCols + col / 16 * 256 + step % 16 * 16 + col % 16];
  }

  int64_t steps;
  std::vector<uint32_t> a;
  std::vector<uint32_t> b;  // as it is packed, in tiles
};

using Accumulate = decltype(MatmulKernel::accumulate);

// Sums over two calls, the second of which goes on; what no row has stays `kUntouched`.
constexpr float kUntouched = 12345;
std::vector<float> sums_of(Accumulate accumulate, const Operands& operands, const MatmulTiles& a,
                           int rows, int64_t cut) {
  alignas(64) float sums[tiles::kTileRows * tiles::kPanelCols];
  std::fill(std::begin(sums), std::end(sums), kUntouched);
  MatmulTiles rest = a;
  rest.data += cut * a.step_bytes;
  if (cut > 0) accumulate(a, rows, operands.b.data(), cut, true, sums);
  accumulate(rest, rows, operands.b.data() + cut * tiles::kPanelCols, operands.steps - cut,
             cut == 0, sums);
  return {sums, sums + rows * tiles::kPanelCols};
}

void emulated(const MatmulTiles& a, int rows, const uint32_t* b, int64_t steps, bool first,
              float* sums) {
  test::EmulatedTiles::begin();
  tiles::accumulate<test::EmulatedTiles>(a, rows, b, steps, first, sums);
  test::EmulatedTiles::end();
}

TEST(MatmulTiles, SumsAreThoseOfDoublePrecision) {
  const Operands operands(48);
  const auto number = [](uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); };
  const auto sums = sums_of(emulated, operands, operands.in_place(), 32, 0);
  for (int64_t row = 0; row < 32; ++row) {
    for (int64_t col = 0; col < tiles::kPanelCols; ++col) {
      double want = 0, most = 0;
      for (int64_t step = 0; step < operands.steps; ++step) {
        const uint32_t a = operands.a[row * operands.steps + step];
        const uint32_t b = operands.b_at(step, col);
        const double first = number(a << 16) * number(b << 16);
        const double second = number(a & 0xffff0000u) * number(b & 0xffff0000u);
        want += first + second;
        most += std::abs(first) + std::abs(second);
      }
      ASSERT_NEAR(sums[row * tiles::kPanelCols + col], want, most * 1e-6) << row << " " << col;
    }
  }
}

TEST(MatmulTiles, NeitherPackingNorCutsNorMissingRowsChangeABit) {
  const Operands operands(208);
  const std::vector<uint32_t> packed = operands.packed();
  const MatmulTiles blocks{reinterpret_cast<const char*>(packed.data()), 0, 64,
                           tiles::kTileRows * 4};
  const auto whole = sums_of(emulated, operands, operands.in_place(), 32, 0);
  for (const int rows : {1, 15, 16, 17, 31, 32}) {
    const std::vector<float> first(whole.begin(), whole.begin() + rows * tiles::kPanelCols);
    for (const int64_t cut : {0, 16, 128}) {
      EXPECT_EQ(sums_of(emulated, operands, operands.in_place(), rows, cut), first) << rows;
      EXPECT_EQ(sums_of(emulated, operands, blocks, rows, cut), first) << rows;
    }
  }
}

// The instructions, where this machine has them, and what is said to be the same.
TEST(MatmulTiles, TheInstructionsGiveTheSameBits) {
  const auto kernel = amx_matmul_kernel(DType::kBF16);
  if (!kernel) GTEST_SKIP() << "no tiles on this machine";
  const Operands operands(208);
  kernel->begin();
  for (const int rows : {1, 16, 20, 32}) {
    EXPECT_EQ(sums_of(kernel->accumulate, operands, operands.in_place(), rows, 16),
              sums_of(emulated, operands, operands.in_place(), rows, 16))
        << rows;
  }
  kernel->end();
}

}  // namespace
}  // namespace skein
