#include "skein/stablehlo/neuron_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein::stablehlo {
namespace {

using testing::HasSubstr;

// A module whose one function has these lines.
std::vector<NeuronLack> of_lines(const std::string& lines) {
  return what_neuron_lacks("module @m {\nfunc.func private @op_3(%arg0: tensor<4xf32>) -> () {\n" +
                           lines + "\n}\n}\n");
}

void expect_lack(const std::string& line, const std::string& operation, const std::string& reason) {
  const auto lacks = of_lines("  " + line);
  ASSERT_FALSE(lacks.empty()) << line;
  EXPECT_EQ(lacks[0].function, "op_3");
  EXPECT_EQ(lacks[0].operation, operation);
  EXPECT_THAT(lacks[0].reason, HasSubstr(reason));
  EXPECT_EQ(lacks[0].line, 3);
}

TEST(NeuronCheck, PassesWhatTrainiumTakes) {
  for (const char* line : {
           "%0 = stablehlo.add %a, %b : tensor<4x8xbf16>",
           "%0 = stablehlo.multiply %a, %b : tensor<4xui32>",
           "%0 = stablehlo.constant dense<5> : tensor<i1>",
           "%0 = \"stablehlo.all_gather\"(%a) {all_gather_dim = 0 : i64, replica_groups = "
           "dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xi32>) -> tensor<8xi32>",
           "%0 = stablehlo.custom_call @AwsNeuronCustomNativeKernel(%a) : (tensor<4xf32>) -> "
           "tensor<4xf32>",
           "%1:2 = func.call @f(%a) : (tensor<4xf8E5M2>) -> (tensor<4xf32>, tensor<4xf32>)",
       }) {
    EXPECT_TRUE(of_lines(line).empty()) << line;
  }
}

TEST(NeuronCheck, NamesElementsThatItLacks) {
  expect_lack("%0 = stablehlo.add %a, %b : tensor<4x8xf64>", "stablehlo.add", "64-bit floats");
  expect_lack("%0 = stablehlo.constant dense<1> : tensor<f64>", "stablehlo.constant", "64-bit");
  expect_lack("%0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xi64>", "stablehlo.convert",
              "--native-int64");
  expect_lack("%0 = stablehlo.multiply %a, %b : tensor<4xui64>", "stablehlo.multiply",
              "NCC_ESFH002");
  expect_lack("%0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xf8E4M3FN>",
              "stablehlo.convert", "NCC_EVRF051");
  expect_lack("%0 = stablehlo.add %a, %b : tensor<4xcomplex<f32>>", "stablehlo.add", "complex");
  expect_lack("%0 = stablehlo.add %a, %b : tensor<?x4xf32>", "stablehlo.add", "NCC_EMOD025");
}

TEST(NeuronCheck, NamesOperationsThatItLacks) {
  expect_lack("%0 = \"stablehlo.sort\"(%a) : (tensor<4xf32>) -> tensor<4xf32>", "stablehlo.sort",
              "NCC_EVRF029");
  expect_lack("%0 = \"stablehlo.case\"(%a) ({", "stablehlo.case", "branches");
  expect_lack("%0 = stablehlo.custom_call @__cudnn$fmha(%a) : (tensor<4xf32>) -> tensor<4xf32>",
              "stablehlo.custom_call", "NCC_EVRF015");
  expect_lack("%0 = stablehlo.dot_general %a, %b : (tensor<4xi32>, tensor<4xi32>) -> tensor<i32>",
              "stablehlo.dot_general", "NCC_EVRF035");
  expect_lack(
      "%0 = \"stablehlo.all_reduce\"(%a) ({ ^bb0(%x: tensor<i32>, %y: tensor<i32>): %s = "
      "stablehlo.add %x, %y : tensor<i32> }) : (tensor<4xi32>) -> tensor<4xi32>",
      "stablehlo.all_reduce", "NCC_EVRF061");
}

TEST(NeuronCheck, LoopsHaveAConstantNumberOfTurns) {
  const std::string begin =
      "  %2:2 = stablehlo.while(%3 = %0, %4 = %1) : tensor<i32>, "
      "tensor<4xf32> cond {\n";
  const std::string rest =
      "    stablehlo.return %6 : tensor<i1>\n  } do {\n"
      "    %7 = stablehlo.abs %4 : tensor<4xf32>\n  }";
  EXPECT_TRUE(of_lines(begin +
                       "    %5 = stablehlo.constant dense<24> : tensor<i32>\n"
                       "    %6 = stablehlo.compare LT, %3, %5 : (tensor<i32>, tensor<i32>) -> "
                       "tensor<i1>\n" +
                       rest)
                  .empty());
  const auto lacks = of_lines(begin +
                              "    %6 = stablehlo.compare LT, %3, %limit : (tensor<i32>, "
                              "tensor<i32>) -> tensor<i1>\n" +
                              rest);
  ASSERT_EQ(lacks.size(), 1u);
  EXPECT_EQ(lacks[0].operation, "stablehlo.compare");
  EXPECT_EQ(lacks[0].line, 4);
}

TEST(NeuronCheck, CountsAndSaysWhere) {
  const auto lacks = what_neuron_lacks(
      "module @m {\n"
      "func.func private @adamw_0(%arg0: tensor<4xf32>) -> () {\n"
      "  %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf64>\n"
      "  %1 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf64>\n"
      "}\n"
      "func.func public @main(%arg0: tensor<24xf64>) -> () {\n"
      "}\n}\n");
  ASSERT_EQ(lacks.size(), 2u);
  EXPECT_EQ(to_string(lacks[0]),
            "adamw_0, line 3: stablehlo.convert: the hardware has no 64-bit floats, and would "
            "compute it in f32 (2 times)");
  EXPECT_EQ(lacks[1].function, "main");
  EXPECT_EQ(lacks[1].operation, "an argument");
}

}  // namespace
}  // namespace skein::stablehlo
