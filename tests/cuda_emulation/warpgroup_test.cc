// Products of a warpgroup against plain loops, on numbers whose products and sums are exact.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "skein/ops/attention/cuda/warpgroup_cuda.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/tensor/dtype.h"

namespace skein {
namespace {

using namespace attention_cuda::warpgroup;  // NOLINT(google-build-using-namespace)

float left_at(int row, int k) { return static_cast<float>((row * 7 + k * 3) % 17 - 8); }
float right_at(int row, int col) { return static_cast<float>((row * 5 + col * 11) % 13 - 6); }
uint32_t bits_of(float value) { return cuda::from_float<bfloat16>(value).bits; }

void load_left(int depth, uint32_t (&left)[4]) {
  for (int word = 0; word < 4; ++word) {
    const int row = row_of_lane() + word % 2 * 8;
    const int col = depth + word / 2 * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
    left[word] = bits_of(left_at(row, col)) | bits_of(left_at(row, col + 1)) << 16;
  }
}

// to[64, N] = left[64, K] right[K, N], where right is `panels`, or its transpose.
template <bool kTransposed, int rows, int cols>
void multiply_all(float* to) {
  static Panels<rows, cols> panels;
  constexpr int kN = kTransposed ? rows : cols, kK = kTransposed ? cols : rows;
  for (int i = static_cast<int>(threadIdx.x); i < rows * cols; i += 128) {
    *panels.at(i / cols, i % cols) = static_cast<uint16_t>(bits_of(right_at(i / cols, i % cols)));
  }
  publish_to_products();
  __syncthreads();
  uint32_t left[kK / kDepth][4];
  for (int k = 0; k < kK; k += kDepth) load_left(k, left[k / kDepth]);
  float sums[kN / 2];
  for (float& sum : sums) sum = NAN;  // the first product begins with zeros
  fence();
  for (int k = 0; k < kK; k += kDepth) {
    const uint64_t right = kTransposed ? rows_transposed(panels, k) : rows_as_they_are(panels, k);
    multiply<kTransposed>(sums, left[k / kDepth], right, k > 0);
  }
  commit();
  wait();
  for (int i = 0; i < kN / 2; ++i)
    to[(row_of_lane() + i / 2 % 2 * 8) * kN + column_of(i)] = sums[i];
}

template <bool kTransposed, int rows, int cols>
void expect_product() {
  constexpr int kN = kTransposed ? rows : cols, kK = kTransposed ? cols : rows;
  std::vector<float> result(64 * kN);
  cudaLaunchConfig_t config;
  config.blockDim = dim3(128);
  ASSERT_EQ(cudaLaunchKernelEx(&config, multiply_all<kTransposed, rows, cols>, result.data()),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int row = 0; row < 64; ++row) {
    for (int col = 0; col < kN; ++col) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) {
        sum += left_at(row, k) * (kTransposed ? right_at(col, k) : right_at(k, col));
      }
      ASSERT_EQ(result[row * kN + col], sum) << row << ", " << col;
    }
  }
}

TEST(Warpgroup, MultipliesByTransposedRows) {
  expect_product<true, 64, 64>();
  expect_product<true, 64, 128>();
  expect_product<true, 128, 64>();
}

TEST(Warpgroup, MultipliesByRows) {
  expect_product<false, 64, 64>();
  expect_product<false, 64, 128>();
  expect_product<false, 32, 128>();
}

// As PTX draws it: in a panel, bits 4 to 6 of an address are those of the place in rows of 128
// bytes exclusive-or its bits 7 to 9. No two elements share a place.
TEST(Warpgroup, SwizzlesPanels) {
  static Panels<64, 128> panels;
  std::set<const uint16_t*> places;
  for (int row = 0; row < 64; ++row) {
    for (int col = 0; col < 128; ++col) {
      const uint16_t* place = panels.at(row, col);
      const auto in_rows = static_cast<uint32_t>(row * 128 + col % 64 * 2);
      EXPECT_EQ(reinterpret_cast<const char*>(place) - reinterpret_cast<const char*>(&panels),
                col / 64 * panels.kBytes + (in_rows ^ (in_rows >> 3 & 0x70)));
      places.insert(place);
    }
  }
  EXPECT_EQ(places.size(), 64u * 128);
}

TEST(WarpgroupDeathTest, RefusesProductsOutOfOrder) {
  const auto run = [](void (*kernel)()) {
    cudaLaunchConfig_t config;
    config.blockDim = dim3(128);
    static_cast<void>(cudaLaunchKernelEx(&config, kernel));
    static_cast<void>(cudaDeviceSynchronize());
  };
  EXPECT_DEATH(run([] {
                 static Panels<64, 64> panels;
                 float sums[32] = {};
                 const uint32_t left[4] = {};
                 multiply<true>(sums, left, rows_transposed(panels, 0), true);
               }),
               "without a fence");
  EXPECT_DEATH(run([] {
                 static Panels<64, 64> panels;
                 float sums[32] = {};
                 const uint32_t left[4] = {};
                 fence();
                 multiply<true>(sums, left, rows_transposed(panels, 0), true);
                 wait();
               }),
               "not committed");
}

}  // namespace
}  // namespace skein
