// What cuBLASLt is asked for where operands have 8 bits. The emulation counts, refuses what is not
// documented, and adds in fp32, so that results are closer to the CPU's than a GPU's are.
#include <cublasLt.h>
#include <gtest/gtest.h>

#include "tests/cuda/fp8_products.h"

namespace skein {
namespace {

using namespace op_test;

constexpr double kTolerance = 1e-5;

int64_t num_products() { return cuda_emulation::cublas_lt().num_fp8_products; }

// Compares with the CPU; returns how many products of 8 bits were multiplied.
int64_t check_and_count(const OpDef& op, const Fp8Product& product,
                        const std::vector<int64_t>& paddings) {
  const int64_t before = num_products();
  expect_products_of_cpu(op, product, paddings, kTolerance);
  return num_products() - before;
}

class Fp8Calls : public testing::TestWithParam<const OpDef*> {};

TEST_P(Fp8Calls, MultiplyEightBits) {
  for (const Fp8Product& product :
       {Fp8Product{32, 32, {16, 16, 16, 16, 32, 16, 16, 16}}, Fp8Product{64, 32, {32, 16}, true},
        Fp8Product{32, 48, {32}, false, true, 1e6}, Fp8Product{32, 48, {32}, false, false, 1e-12},
        Fp8Product{144, 80, {272}}, Fp8Product{16, 272, {16, 144}}}) {
    EXPECT_GT(check_and_count(*GetParam(), product, {}), 0);
  }
}

TEST_P(Fp8Calls, MultiplyEightBitsOfDistantRows) {
  EXPECT_GT(check_and_count(*GetParam(), {48, 64, {32, 16}}, {3, 16}), 0);
}

TEST_P(Fp8Calls, AreNotMadeForOtherSizes) {
  for (const Fp8Product& product :
       {Fp8Product{1, 37, {53}}, Fp8Product{24, 24, {8, 40}}, Fp8Product{33, 21, {7, 9}, true}}) {
    EXPECT_EQ(check_and_count(*GetParam(), product, {3}), 0);
  }
}

// Only the gradients of weights sum over tokens.
TEST_P(Fp8Calls, OfTokensThatAreNoMultipleAreThoseThatDoNotSumOverThem) {
  const bool has_others = GetParam() != &kLinearDw;
  EXPECT_EQ(check_and_count(*GetParam(), {13, 48, {16, 32}}, {3}) > 0, has_others);
}

TEST_P(Fp8Calls, AreNotMadeWithoutAnAlgorithm) {
  cuda_emulation::cublas_lt().proposes = false;
  const Fp8Product product{48, 80, {16, 32}};
  EXPECT_EQ(check_and_count(*GetParam(), product, {}), 0);
  cuda_emulation::cublas_lt() = {};
}

TEST(Fp8Calls, AddFastWhereTheyAreAskedTo) {
  const int64_t& count = cuda_emulation::cublas_lt().num_fast_accumulations;
  for (const bool fp8 : {false, true}) {
    for (const bool fast : {false, true}) {
      OpCase test = fp8_case(kLinear, {32, 48, {32}});
      test.attrs.set("fp8", fp8);
      if (!fp8) test.inputs.resize(2);  // no largest magnitudes
      if (fast) test.attrs.set("fast_accumulation", true);
      const int64_t before = count;
      run_on(build(test, 1), test_device().kernels, 0);
      EXPECT_EQ(count > before, fp8 && fast);
    }
  }
}

// Parts that lie as one matrix are one product, and parts that do not are the same numbers.
TEST_P(Fp8Calls, TakePartsTogetherWhereTheyAreOneMatrix) {
  const OpDef& op = *GetParam();
  std::vector<double> results[2];
  for (const bool apart : {false, true}) {
    int64_t before = 0;
    results[apart] = run_parts(op, apart, [&] { before = num_products(); });
    const int64_t dx = &op == &kLinearDx || &op == &kLinearDxDw ? 1 : 0;
    const int64_t others = &op == &kLinearDx ? 0 : apart ? 3 : 1;
    EXPECT_EQ(num_products() - before, dx + others);
  }
  const DType dtype = &op == &kLinearDw ? DType::kF32 : DType::kBF16;
  expect_close(results[1], results[0], dtype, kTolerance, "parts apart");
}

INSTANTIATE_TEST_SUITE_P(Ops, Fp8Calls, testing::ValuesIn(kFp8Ops),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace skein
