#include "skein/comm/tree_sum.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <limits>

#include "tests/comm/ranks.h"
#include "tests/comm/terms.h"

namespace skein::comm_test {
namespace {

Bytes tree_sum_of(DType dtype, std::vector<Bytes> terms, int into) {
  Bytes separate(terms[0].size());
  std::vector<const void*> pointers;
  for (const Bytes& bytes : terms) pointers.push_back(bytes.data());
  Bytes& result = into < 0 ? separate : terms[static_cast<size_t>(into)];
  tree_sum(dtype, pointers, result.data(), static_cast<int64_t>(result.size()) / size_of(dtype));
  return result;
}

TEST(TreeSum, EqualsGapDoublingForEveryNumberOfTermsAndThreads) {
  run_ranks(1, [](const WorldOptions&) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kBF16}) {
      for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 33}) {
        for (const int64_t elements : {int64_t{0}, int64_t{1}, int64_t{1025}, int64_t{20000}}) {
          if (elements == 20000 && n > 5) continue;
          std::vector<Bytes> terms;
          for (int i = 0; i < n; ++i) terms.push_back(term(dtype, elements, i));
          const Bytes expected = serial_sum(dtype, terms);
          for (const int threads : {1, 3}) {
            omp_set_num_threads(threads);
            ASSERT_EQ(tree_sum_of(dtype, terms, -1), expected) << dtype_name(dtype) << " " << n;
            ASSERT_EQ(tree_sum_of(dtype, terms, 0), expected) << "over the first of " << n;
            ASSERT_EQ(tree_sum_of(dtype, terms, n - 1), expected) << "over the last of " << n;
            ASSERT_EQ(tree_sum_of(dtype, terms, n / 2), expected) << "over the middle of " << n;
          }
        }
      }
    }
  });
}

TEST(TreeSum, OrderMatters) {
  // (1 + 2^-24) + (2^-24 + 2^-24) rounds to 1 + 2^-23; from left to right the sum would be 1.
  const std::vector<float> a{1.0f}, b{0x1p-24f}, c{0x1p-24f}, d{0x1p-24f};
  const Bytes sum =
      tree_sum_of(DType::kF32, {bytes_of(a), bytes_of(b), bytes_of(c), bytes_of(d)}, -1);
  EXPECT_EQ(values_of<float>(sum)[0], 1.0f + 0x1p-23f);
}

TEST(TreeSum, Bf16RoundsOnce) {
  // In bf16 (8 bits), 1 + 2^-9 + 2^-9 + 2^-9 is 1 if every sum is rounded, and 1 + 2^-7 if only the
  // last one is.
  const std::vector<bfloat16> one{bfloat16(1.0f)}, small{bfloat16(0x1p-9f)};
  const Bytes a = bytes_of(one), b = bytes_of(small);
  EXPECT_EQ(static_cast<float>(values_of<bfloat16>(tree_sum_of(DType::kBF16, {a, b, b, b}, -1))[0]),
            1.0f + 0x1p-7f);
}

TEST(TreeSum, IntegersWrapAndNanStays) {
  const std::vector<int32_t> most{std::numeric_limits<int32_t>::max()}, one{1};
  const Bytes sum = tree_sum_of(DType::kI32, {bytes_of(most), bytes_of(one)}, -1);
  EXPECT_EQ(values_of<int32_t>(sum)[0], std::numeric_limits<int32_t>::min());
  const std::vector<bfloat16> nan{bfloat16(std::nanf(""))}, two{bfloat16(2.0f)};
  const Bytes not_a_number = tree_sum_of(DType::kBF16, {bytes_of(two), bytes_of(nan)}, -1);
  EXPECT_TRUE(std::isnan(static_cast<float>(values_of<bfloat16>(not_a_number)[0])));
}

}  // namespace
}  // namespace skein::comm_test
