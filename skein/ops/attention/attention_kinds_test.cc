// Attention on every kind of CPU kernels that this machine runs.
#include <gtest/gtest.h>

#include <algorithm>

#include "hwy/highway.h"
#include "hwy/targets.h"
#include "skein/ops/attention/cpu/attention_cpu.h"
#include "skein/ops/ops.h"
#include "skein/ops/simd/cpu_kind.h"
#include "tests/ops/attention_reference.h"

namespace skein {
namespace {

using namespace op_test::attention;  // NOLINT(google-build-using-namespace)

// The kernels for CPUs with fewer instructions than this one.
class AttentionPortable : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if ((hwy::SupportedTargets() & GetParam()) == 0) GTEST_SKIP() << "not on this machine";
    const auto* native = &attention_cpu::kernels_for(DType::kF32, attention_cpu::best_products());
    const bool is_best = (hwy::SupportedTargets() & HWY_TARGETS & (GetParam() - 1)) == 0;
    hwy::SetSupportedTargetsForTest(GetParam());
    detect_cpu_kind_again();
    EXPECT_EQ(native == &attention_cpu::kernels_for(DType::kF32, attention_cpu::best_products()),
              is_best);
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    detect_cpu_kind_again();
  }
};

TEST_P(AttentionPortable, MatchesTheDefinition) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t head_dim : {7, 40, 64}) {
      check_both({.sequence_length = 150,
                  .heads = 2,
                  .kv_heads = 1,
                  .head_dim = head_dim,
                  .dtype = dtype,
                  .boundaries = {61, 100}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, AttentionPortable,
                         testing::Values<int64_t>(HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_SCALAR),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

// Products of vectors on a CPU that has tiles, and tiles with dims that fill none.
TEST(Attention, EachKindOfProductMatchesTheDefinition) {
  for (const char* kind : {"amx", "avx512-bf16", "avx512"}) {
    if (common_cpu_kind(std::vector<std::string>{kind, best_cpu_kind()}) != kind) continue;
    limit_cpu_kind(kind);
    for (const int64_t head_dim : {7, 16, 40, 64, 96}) {
      for (const int64_t length : {20, 64, 150, 257}) {
        SCOPED_TRACE(fmt::format("{}, head_dim {}, {} positions", kind, head_dim, length));
        check_both({.sequence_length = length,
                    .heads = 2,
                    .kv_heads = 1,
                    .head_dim = head_dim,
                    .dtype = DType::kBF16,
                    .boundaries = {length / 3, length / 2 + 1}});
      }
    }
    limit_cpu_kind("auto");
  }
}

// A second run on the same memory, with other keys: nothing that was packed before is read.
TEST(Attention, ARunPacksItsOwnKeys) {
  constexpr int64_t kTokens = 600, kDim = 32;
  const auto numbers = [](int64_t factor) {
    std::vector<float> values(kTokens * kDim);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<int64_t>(i) * factor % 61 - 30) / 30;
    }
    return values;
  };
  std::vector<float> q = numbers(7), k = numbers(11), v = numbers(13);
  std::vector<int32_t> start(kTokens, 0);
  const Kernel kernel = cpu_kernels().at("attention");
  const auto view = [](auto& data, DType dtype, const Shape& shape) {
    return View::contiguous(data.data(), dtype, shape);
  };
  std::vector<float> o(kTokens * kDim), lse(kTokens);
  KernelCall call;
  call.attrs = {{"heads", int64_t{1}}, {"kv_heads", int64_t{1}}, {"causal", true},
                {"head_dim", kDim},    {"scale", 0.5},           {"sequence_length", kTokens}};
  const Shape matrix{kTokens, kDim}, vector{kTokens};
  call.inputs = {view(q, DType::kF32, matrix), view(k, DType::kF32, matrix),
                 view(v, DType::kF32, matrix), view(start, DType::kI32, vector)};
  call.outputs = {view(o, DType::kF32, matrix), view(lse, DType::kF32, Shape{kTokens, 1})};
  const auto run_on = [&](std::vector<char>& scratch) {
    call.scratch = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    kernel.run(call);
    return o;
  };
  std::vector<char> scratch(kernel.scratch_bytes(call) + 64), fresh(scratch.size());
  const std::vector<float> before = run_on(scratch);
  std::ranges::copy(numbers(17), k.begin());
  const std::vector<float> after = run_on(scratch);
  EXPECT_NE(after, before);
  EXPECT_EQ(after, run_on(fresh));
}

TEST(Attention, ProductsOfBF16AreForBF16) {
  using attention_cpu::kernels_for, attention_cpu::Products;
  if (attention_cpu::best_products() == Products::kFp32) GTEST_SKIP() << "not on this machine";
  EXPECT_NE(&kernels_for(DType::kBF16, attention_cpu::best_products()),
            &kernels_for(DType::kBF16, Products::kFp32));
  EXPECT_EQ(&kernels_for(DType::kF32, attention_cpu::best_products()),
            &kernels_for(DType::kF32, Products::kFp32));
}

}  // namespace
}  // namespace skein
