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

#if defined(__linux__) && defined(__x86_64__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstddef>
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

TEST(CpuKindText, WhatAHostHasIsNamed) {
  const auto text = [](const char* kind, const char* best) {
    return refused_kind_text("device.cpu", kind, best, {});
  };
  EXPECT_EQ(text("auto", "avx2"), "");
  EXPECT_EQ(text("avx2", "avx2"), "");
  EXPECT_EQ(text("sse4", "amx"), "");
  EXPECT_EQ(text("amx", "avx512"),
            "device.cpu is \"amx\", and this host's CPU has avx512: expected \"auto\", or a kind "
            "that every host of the run has; this one has \"avx512\", \"avx2\" and \"sse4\"");
  EXPECT_THAT(text("AVX2", "avx2"), testing::EndsWith("this one has \"avx2\" and \"sse4\""));
  EXPECT_THAT(text("avx1024", "sse4"), testing::EndsWith("this one has \"sse4\""));
  EXPECT_EQ(text("avx2", "neon"),
            "device.cpu is \"avx2\", and this host's CPU has neon: expected \"auto\"");
}

TEST(CpuKindText, TilesThatTheSystemDeniesAreSaidToBeThere) {
  const auto text = [](const char* kind, TileAccess tiles) {
    return refused_kind_text("SKEIN_CPU", kind, "avx512-bf16", tiles);
  };
  EXPECT_EQ(
      text("amx", {.in_cpu = true, .error = EPERM}),
      "SKEIN_CPU is \"amx\", and this host's CPU has tiles (AMX), but the system does not let "
      "this process use them: arch_prctl(ARCH_REQ_XCOMP_PERM) says Operation not permitted "
      "(1): Linux lets it from 5.16 on, unless a container's filter of system calls (seccomp) "
      "forbids it; expected \"auto\", or a kind that every host of the run has; this one has "
      "\"avx512-bf16\", \"avx512\", \"avx2\" and \"sse4\"");
  EXPECT_THAT(text("amx", {}), testing::HasSubstr("this host's CPU has avx512-bf16: expected"));
  EXPECT_THAT(text("amy", {.in_cpu = true, .error = EPERM}),
              testing::Not(testing::HasSubstr("tiles")));
  EXPECT_EQ(text("avx2", {.in_cpu = true, .error = EPERM}), "");
  EXPECT_EQ(denied_tiles_text({}), "");
  EXPECT_EQ(denied_tiles_text({.in_cpu = true}), "");
}

#if defined(__linux__) && defined(__x86_64__)
// The system denies tiles to this process from now on, as a container's filter makes it deny them.
void deny_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),  // the lower half
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kRequestPermission, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {.len = std::size(program), .filter = program};
  const bool done = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
                    ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0 && errno == EPERM;
  if (!done) ::_exit(3);
}

// In a process of its own, which has not asked before.
TEST(CpuKindDenied, WithoutTilesTheKindIsTheNextOne) {
  if (!cpu_has_tiles()) GTEST_SKIP() << "no tiles in this machine's CPU";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_child = [] {
    ::unsetenv("SKEIN_CPU");
    deny_tiles();
    fmt::print(stderr, "{}\n", best_cpu_kind());
    limit_cpu_kind("auto");
    fmt::print(stderr, "{} {}\n{}\n", cpu_kind(), cpu_uses_amx(), denied_tiles());
    fmt::print(stderr, "{}\n", test::error_of([] { limit_cpu_kind("amx"); }));
    limit_cpu_kind("avx512-bf16");
    ::_exit(denied_tiles().empty() ? 0 : 4);  // which nobody misses
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(0),
              "avx512-bf16\navx512-bf16 false\nthis host's CPU has tiles .* Operation not "
              "permitted .*\ndevice.cpu is \"amx\", and this host's CPU has tiles");
}
#endif

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
  EXPECT_THAT(test::error_of([] { limit_cpu_kind("auto"); }),
              testing::HasSubstr("SKEIN_CPU is \"new\""));
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
