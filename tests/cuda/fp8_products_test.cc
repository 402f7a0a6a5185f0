// Products of 8-bit operands on CUDA against those on the CPU: the operands are the same numbers,
// so that results differ by the order and the width of sums.
#include "tests/cuda/fp8_products.h"

#include <gtest/gtest.h>

#include "skein/ops/algorithms.h"

namespace skein {
namespace {

using namespace op_test;

class Fp8Products : public testing::TestWithParam<const OpDef*> {};

TEST_P(Fp8Products, AreThoseOfTheCpu) {
  for (const Fp8Product& product :
       {Fp8Product{32, 32, {16, 16, 16, 16, 32, 16, 16, 16}}, Fp8Product{64, 32, {32, 16}, true},
        Fp8Product{32, 48, {32}, false, true, 1e6}, Fp8Product{32, 48, {32}, false, false, 1e-12},
        Fp8Product{144, 80, {272}}, Fp8Product{16, 272, {16, 144}}}) {
    expect_products_of_cpu(*GetParam(), product, {});
  }
}

// Not by our own slow kernel, which is right as well.
TEST_P(Fp8Products, AreMultipliedByTheLibrary) {
  const OpDef& op = *GetParam();
  const Fp8Product product{96, 112, {208}};
  expect_products_of_cpu(op, product, {});
  int multiplied = 0;
  for (const auto& [problem, algorithm] : chosen_algorithms().by_problem) {
    const bool of_8_bits = problem.find("e4m3") != std::string::npos;
    multiplied += of_8_bits && problem.find("208") != std::string::npos;
  }
  EXPECT_GE(multiplied, &op == &kLinearDxDw ? 2 : 1);
}

TEST_P(Fp8Products, OfDistantRows) {
  expect_products_of_cpu(*GetParam(), {48, 64, {32, 16}}, {3, 16});
}

TEST_P(Fp8Products, OfOtherSizesAreOfTheSameNumbers) {
  for (const Fp8Product& product :
       {Fp8Product{1, 37, {53}}, Fp8Product{24, 24, {8, 40}}, Fp8Product{33, 21, {7, 9}, true}}) {
    expect_products_of_cpu(*GetParam(), product, {3});
  }
}

TEST_P(Fp8Products, HaveTheScaleOfWhatIsNotNan) {
  const Fp8Product product{32, 32, {16, 16}};
  OpCase test = fp8_case(*GetParam(), product);
  test.inputs[0].values[5] = std::nan("");
  const BuiltCase built = build(test, num_outputs(*GetParam(), product));
  const Outputs got = run_on(built, test_device().kernels, 0),
                want = run_on(built, cpu_kernels(), 0);
  int64_t num_nan = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    double largest = 0;
    for (const double value : want[i]) {
      if (!std::isnan(value)) largest = std::max(largest, std::abs(value));
    }
    for (size_t k = 0; k < want[i].size(); ++k) {
      num_nan += std::isnan(want[i][k]);
      EXPECT_EQ(std::isnan(got[i][k]), std::isnan(want[i][k]));
      if (std::isnan(want[i][k])) continue;
      EXPECT_NEAR(got[i][k], want[i][k], 0x1p-7 * std::abs(want[i][k]) + fp8_tolerance() * largest);
    }
  }
  EXPECT_GT(num_nan, 0);
}

TEST_P(Fp8Products, OfPartsThatLieApartAreTheSame) {
  const OpDef& op = *GetParam();
  const DType dtype = &op == &kLinearDw ? DType::kF32 : DType::kBF16;
  expect_close(run_parts(op, true), run_parts(op, false), dtype, fp8_tolerance(), "parts apart",
               0.0, true);
}

INSTANTIATE_TEST_SUITE_P(Ops, Fp8Products, testing::ValuesIn(kFp8Ops),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace skein
