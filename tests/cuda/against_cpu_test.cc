// Kernels of CUDA that promise the bits of the CPU's, or take more tensors than one launch does.
#include <gtest/gtest.h>

#include "skein/base/numbers/exact_sum.h"
#include "skein/ops/adamw/adamw.h"
#include "skein/ops/fill_zero/fill_zero.h"
#include "skein/ops/fold/fold.h"
#include "skein/ops/sum_squares/sum_squares.h"
#include "tests/ops/op_harness.h"
#include "tests/ops/paged_attention_reference.h"

namespace skein {
namespace {

using namespace op_test;

constexpr int kManyTensors = 402;

Outputs run(const OpCase& test, int num_outputs) {
  const BuiltCase built = build(test, num_outputs);
  const GraphRun run(built.graph, built.inputs, {});
  Outputs outputs;
  for (const ValueId id : built.graph.nodes()[0].outputs) outputs.push_back(run.read(id));
  return outputs;
}

Outputs run_on_cpu(const OpCase& test, int num_outputs) {
  const KernelTable kernels = std::exchange(test_device().kernels, cpu_kernels());
  Outputs outputs = run(test, num_outputs);
  test_device().kernels = kernels;
  return outputs;
}

Tensor scalar(DType dtype, double value) {
  return make_tensor(dtype, {1}, [=](int64_t) { return value; });
}

struct Update {
  Shape shape;
  DType weight, moments;
  bool master, stochastic;
  int step;
};

OpCase update_case(const Update& update) {
  OpCase test{.op = &kAdamw, .phase = Phase::kUpdate};
  test.attrs = {{"beta1", 0.9},
                {"beta2", 0.999},
                {"epsilon", 1e-8},
                {"weight_decay", 0.1},
                {"stochastic_rounding", update.stochastic},
                {"seed", int64_t{0x123456789abcdef0}},
                {"stream", int64_t{0xdeadbeef}}};
  Tensor gradient = random_tensor(DType::kF32, update.shape, 2, 1.0, Role::kGradient);
  Tensor squares = random_tensor(update.moments, update.shape, 4, 0.1, Role::kOptimizer);
  for (double& value : squares.values) value = round_to(update.moments, value * value);
  for (size_t i = 0; i < gradient.values.size(); i += 17) {
    gradient.values[i] = squares.values[i] = 0;
  }
  test.inputs = {
      random_tensor(update.weight, update.shape, 1, 1.0, Role::kParameter),
      gradient,
      random_tensor(update.moments, update.shape, 3, 0.1, Role::kOptimizer),
      squares,
      update.master ? random_tensor(DType::kF32, update.shape, 1, 1.0, Role::kOptimizer) : Tensor{},
      scalar(DType::kF32, 0.3),
      scalar(DType::kF32, 3e-4),
      scalar(DType::kI32, update.step)};
  return test;
}

enum class Rounding { kNearest, kStochastic, kMaster };

TEST(AgainstCpu, AdamwHasItsBits) {
  for (const Shape& shape : {Shape{8, 720}, Shape{7, 33}, Shape{5000}}) {
    for (const DType weight : {DType::kF32, DType::kBF16}) {
      for (const DType moments : {DType::kF32, DType::kBF16}) {
        for (const Rounding mode : {Rounding::kNearest, Rounding::kStochastic, Rounding::kMaster}) {
          if (weight == DType::kF32 && mode != Rounding::kNearest) continue;
          for (const int step : {1, 1000}) {
            const bool master = mode == Rounding::kMaster;
            const OpCase test =
                update_case({shape, weight, moments, master, mode == Rounding::kStochastic, step});
            const int num_outputs = master ? 5 : 4;
            EXPECT_TRUE(run(test, num_outputs) == run_on_cpu(test, num_outputs))
                << shape.to_string() << " weight " << dtype_name(weight) << " moments "
                << dtype_name(moments) << " mode " << static_cast<int>(mode) << " step " << step;
          }
        }
      }
    }
  }
}

// Tensor i of many; those of a pair have one size.
Tensor one_of_many(int i, bool pairs, bool mixed) {
  const int64_t size = 1 + (pairs ? i / 2 : i) * 37 % 5000;
  const DType dtype = mixed && i % 3 == 1 ? DType::kBF16 : DType::kF32;
  return random_tensor(dtype, {size}, i, 1.0, Role::kGradient);
}

TEST(AgainstCpu, FoldsOfManyTensors) {
  for (const char* mode : {"push", "merge"}) {
    OpCase test{.op = &kFold, .attrs = {{"mode", std::string(mode)}}, .phase = Phase::kBackward};
    for (int i = 0; i < kManyTensors; ++i) test.inputs.push_back(one_of_many(i, true, false));
    EXPECT_TRUE(run(test, kManyTensors) == run_on_cpu(test, kManyTensors)) << mode;
  }
}

TEST(AgainstCpu, ZeroesManyTensors) {
  OpCase test{.op = &kFillZero, .phase = Phase::kUpdate};
  for (int i = 0; i < kManyTensors; ++i) test.inputs.push_back(one_of_many(i, false, true));
  EXPECT_TRUE(run(test, kManyTensors) == run_on_cpu(test, kManyTensors));
}

TEST(AgainstCpu, SquaresOfManyTensors) {
  OpCase test{.op = &kSumSquares, .phase = Phase::kUpdate};
  for (int i = 0; i < kManyTensors; ++i) test.inputs.push_back(one_of_many(i, false, true));
  const double expected = exact_sum::total(run_on_cpu(test, 1)[0].data());
  EXPECT_GT(expected, 1000);
  EXPECT_NEAR(exact_sum::total(run(test, 1)[0].data()), expected, 1e-13 * expected);
}

// A text that a GPU and a CPU continue by turns would be the same text.
TEST(AgainstCpu, PagedAttentionHasItsBits) {
#if HWY_ARCH_X86
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (target <= HWY_AVX2) break;  // lower numbers are better instruction sets
    GTEST_SKIP() << "this CPU has no fused multiply-adds";
  }
#endif
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [heads, kv_heads, head_dim] :
         std::vector<std::array<int64_t, 3>>{{4, 1, 64}, {2, 2, 20}}) {
      paged::Config config = paged::Config::of(dtype, heads, kv_heads, head_dim, 16);
      config.draw_pages(2, 200, 1);
      std::vector<paged::Token> tokens = {{0, 199}, {-1, 0}};
      for (int64_t p = 60; p < 72; ++p) tokens.push_back({1, p});
      const OpCase test = paged::case_of(config, paged::inputs_of(config, tokens));
      EXPECT_EQ(run(test, 3), run_on_cpu(test, 3));
    }
  }
}

}  // namespace
}  // namespace skein
