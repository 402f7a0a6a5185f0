// Products of a warpgroup against plain loops, on numbers whose products and sums are exact.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "skein/ops/attention/cuda/barrier_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_cuda.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/tensor/dtype.h"

namespace skein {
namespace {

using namespace attention_cuda::warpgroup;  // NOLINT(google-build-using-namespace)
using attention_cuda::Barrier;

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

// The same with a left operand of 128 rows in shared memory, of which a warpgroup has 64; products
// of two groups, the first of which is waited for alone.
template <bool kTransposed, int rows, int cols>
void multiply_shared(float* to) {
  constexpr int kN = kTransposed ? rows : cols, kK = kTransposed ? cols : rows;
  static Panels<128, (kK + 63) / 64 * 64> left;
  static Panels<rows, cols> right;
  for (int i = static_cast<int>(threadIdx.x); i < 128 * kK; i += 256) {
    *left.at(i / kK, i % kK) = static_cast<uint16_t>(bits_of(left_at(i / kK, i % kK)));
  }
  for (int i = static_cast<int>(threadIdx.x); i < rows * cols; i += 256) {
    *right.at(i / cols, i % cols) = static_cast<uint16_t>(bits_of(right_at(i / cols, i % cols)));
  }
  publish_to_products();
  __syncthreads();
  const int first_row = static_cast<int>(threadIdx.x) / 128 * 64;
  float sums[kN / 2], others[kN / 2];
  fence();
  for (int k = 0; k < kK; k += kDepth) {
    const uint64_t to_right = kTransposed ? rows_transposed(right, k) : rows_as_they_are(right, k);
    multiply<kTransposed>(sums, left_rows(left, first_row, k), to_right, k > 0);
  }
  commit();
  multiply<kTransposed>(others, left_rows(left, first_row, 0),
                        kTransposed ? rows_transposed(right, 0) : rows_as_they_are(right, 0),
                        false);
  commit();
  wait<1>();
  for (int i = 0; i < kN / 2; ++i) {
    to[(first_row + row_of_lane() + i / 2 % 2 * 8) * kN + column_of(i)] = sums[i];
  }
  wait();
}

template <bool kTransposed, int rows, int cols>
void expect_product_of(void (*kernel)(float*), int num_rows) {
  constexpr int kN = kTransposed ? rows : cols, kK = kTransposed ? cols : rows;
  std::vector<float> result(static_cast<size_t>(num_rows * kN));
  cudaLaunchConfig_t config;
  config.blockDim = dim3(static_cast<unsigned>(num_rows * 2));
  ASSERT_EQ(cudaLaunchKernelEx(&config, kernel, result.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int row = 0; row < num_rows; ++row) {
    for (int col = 0; col < kN; ++col) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) {
        sum += left_at(row, k) * (kTransposed ? right_at(col, k) : right_at(k, col));
      }
      ASSERT_EQ(result[row * kN + col], sum) << row << ", " << col;
    }
  }
}

template <bool kTransposed, int rows, int cols>
void expect_product() {
  expect_product_of<kTransposed, rows, cols>(multiply_all<kTransposed, rows, cols>, 64);
  expect_product_of<kTransposed, rows, cols>(multiply_shared<kTransposed, rows, cols>, 128);
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

// Two warps write what a third reads, through one place, for an odd number of rounds.
void pass_numbers(int* sum) {
  static Barrier written, used;
  static int numbers[64];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) written.init(2);
  if (thread == 0) used.init(1);
  __syncthreads();
  for (int round = 0; round < 7; ++round) {
    if (thread < 64) {
      if (round > 0) used.wait(round - 1);
      numbers[thread] = round * 100 + thread;
      written.arrive();
    } else {
      written.wait(round);
      for (int i = thread - 64; i < 64; i += 32) sum[thread - 64] += numbers[i];
      used.arrive();
    }
  }
}

TEST(Warpgroup, BarriersKeepWritersAndReadersApart) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(96);
  std::vector<int> sums(32);
  ASSERT_EQ(cudaLaunchKernelEx(&config, pass_numbers, sums.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(sums[i], 2 * 100 * 21 + 7 * (i + i + 32));
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
