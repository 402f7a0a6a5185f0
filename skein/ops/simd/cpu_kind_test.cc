// Which targets the kernels that Highway dispatches really use.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/simd/cpu_kind_test.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
inline int64_t target() { return HWY_TARGET; }
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "skein/ops/simd/cpu_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/ops/attention/cpu/attention_cpu.h"
#include "skein/ops/matmul/matmul_cpu.h"
#include "tests/error_of.h"

namespace skein {
namespace {

HWY_EXPORT(target);

class CpuKind : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("SKEIN_CPU");  // with which all tests may run
    limit_cpu_kind("auto");
  }
  void TearDown() override { limit_cpu_kind("auto"); }
};

bool is_better(std::string_view a, std::string_view b) {
  return std::find(kCpuKinds.begin(), kCpuKinds.end(), a) <
         std::find(kCpuKinds.begin(), kCpuKinds.end(), b);
}

TEST_F(CpuKind, EveryKernelKeepsTheLimit) {
  const std::string best = best_cpu_kind();
  if (std::find(kCpuKinds.begin(), kCpuKinds.end(), best) == kCpuKinds.end()) {
    GTEST_SKIP() << "no limits on " << best;
  }
  EXPECT_EQ(cpu_kind(), best);
  for (const std::string_view kind : kCpuKinds) {
    if (is_better(kind, best)) {
      EXPECT_THROW(limit_cpu_kind(kind), Error) << kind;
      EXPECT_EQ(cpu_kind(), best);
      continue;
    }
    limit_cpu_kind(kind);
    EXPECT_EQ(cpu_kind(), kind);
    const int64_t used = HWY_DYNAMIC_DISPATCH(target)();
    EXPECT_EQ(used <= HWY_AVX3, is_better(kind, "avx2")) << kind << " " << hwy::TargetName(used);
    EXPECT_EQ(used <= HWY_AVX2, is_better(kind, "sse4")) << kind << " " << hwy::TargetName(used);
    EXPECT_EQ(avx512_matmul_kernel(DType::kF32).has_value(), is_better(kind, "avx2")) << kind;
    EXPECT_EQ(avx512_matmul_kernel(DType::kBF16).has_value(), is_better(kind, "avx512")) << kind;
    EXPECT_EQ(amx_matmul_kernel(DType::kBF16).has_value(), kind == "amx") << kind;
    EXPECT_EQ(attention_cpu::best_products(), kind == "amx" ? attention_cpu::Products::kTiles
                                              : kind == "avx512-bf16"
                                                  ? attention_cpu::Products::kBf16Dot
                                                  : attention_cpu::Products::kFp32)
        << kind;
    limit_cpu_kind("auto");
    EXPECT_EQ(cpu_kind(), best);
  }
}

TEST_F(CpuKind, WhatTheCpuLacksIsRefused) {
  try {
    limit_cpu_kind("avx1024");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), testing::HasSubstr("device.cpu is \"avx1024\""));
    EXPECT_THAT(error.what(), testing::HasSubstr(best_cpu_kind()));
  }
}

TEST_F(CpuKind, AVariableLimitsWhatTheConfigurationLeavesOpen) {
  const std::string best = best_cpu_kind();
  if (std::find(kCpuKinds.begin(), kCpuKinds.end(), best) == kCpuKinds.end()) {
    GTEST_SKIP() << "no limits on " << best;
  }
  ::setenv("SKEIN_CPU", "sse4", 1);
  limit_cpu_kind("auto");
  EXPECT_EQ(cpu_kind(), "sse4");
  limit_cpu_kind(best);
  EXPECT_EQ(cpu_kind(), best);
  ::setenv("SKEIN_CPU", "new", 1);
  EXPECT_THAT(test::error_of([] { limit_cpu_kind("auto"); }), testing::HasSubstr("SKEIN_CPU is"));
  ::unsetenv("SKEIN_CPU");
}

TEST_F(CpuKind, TheCommonKindIsTheLeast) {
  const auto common = [](std::vector<std::string> kinds) { return common_cpu_kind(kinds); };
  EXPECT_EQ(common({"avx512", "avx512-bf16"}), "avx512");
  EXPECT_EQ(common({"avx512-bf16", "amx"}), "avx512-bf16");
  EXPECT_EQ(common({"avx512", "sse4", "avx2"}), "sse4");
  EXPECT_EQ(common({"avx2", "neon"}), "");
  EXPECT_EQ(common({}), "");
}

}  // namespace
}  // namespace skein
#endif  // HWY_ONCE
