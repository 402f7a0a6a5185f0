#include "skein/schedule/estimate.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

Instruction instruction(double flops, int64_t bytes_read, int64_t bytes_written) {
  static const OpDef kOp = {.name = "an_op"};
  Instruction result;
  result.op = &kOp;
  result.cost = {flops, bytes_read, bytes_written};
  return result;
}

Hardware hardware() {
  Hardware h;
  h.bf16.flops_per_s = 100;
  h.f32.flops_per_s = 10;
  h.memory_bytes_per_s = 4;
  h.launch_s = 0.5;
  return h;
}

TEST(Estimate, TheLongerOfArithmeticAndMemoryAndALaunch) {
  Program program;
  program.instructions = {instruction(1000, 2, 2), instruction(1, 20, 4)};
  EXPECT_DOUBLE_EQ(estimate_seconds(program, hardware(), DType::kBF16), 0.5 + 10 + 0.5 + 6);
  EXPECT_DOUBLE_EQ(estimate_seconds(program, hardware(), DType::kF32), 0.5 + 100 + 0.5 + 6);
}

TEST(Estimate, ProductsOf8BitOperandsHaveTheirOwnRateWhereItIsKnown) {
  Instruction product = instruction(1000, 2, 2);
  product.attrs.set("fp8", true);
  Hardware h = hardware();
  EXPECT_DOUBLE_EQ(estimate_seconds(product, rates_of(h, DType::kBF16)), 0.5 + 10);
  h.fp8_flops_per_s = 200;
  EXPECT_DOUBLE_EQ(estimate_seconds(product, rates_of(h, DType::kBF16)), 0.5 + 5);
  product.attrs.set("fp8", false);
  EXPECT_DOUBLE_EQ(estimate_seconds(product, rates_of(h, DType::kBF16)), 0.5 + 10);
}

TEST(Estimate, StepsWithoutWorkAreNoKernels) {
  EXPECT_EQ(estimate_seconds(instruction(0, 0, 0), rates_of(hardware(), DType::kBF16)), 0);
}

}  // namespace
}  // namespace skein
