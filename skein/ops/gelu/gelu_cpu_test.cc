// Compares the normal distribution function of every instruction set with that of the C library.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/gelu/gelu_cpu_test.cc"
#include "hwy/foreach_target.h"
#include "skein/ops/gelu/gelu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;

// `exact` of f32, `coarse` of values that bf16 rounds.
void normal_distribution(const float* x, float* exact, float* coarse, size_t count) {
  const sm::F32 d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const sm::VF32 value = hn::LoadU(d, x + i);
    hn::StoreU(sm::exact_gelu<float>(value).share, d, exact + i);
    hn::StoreU(sm::exact_gelu<bfloat16>(value).share, d, coarse + i);
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(normal_distribution);

double ulp_of(double value) { return std::ldexp(1.0, std::ilogb(value) - 23); }

// Floats between 2^-30 and 13, of both signs, and 0.
std::vector<float> arguments() {
  std::vector<float> x = {0.0f, -0.0f};
  const uint32_t last = std::bit_cast<uint32_t>(13.0f);
  for (uint32_t bits = std::bit_cast<uint32_t>(0x1p-30f); bits <= last; bits += 997) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-x.back());
  }
  x.resize((x.size() + 15) / 16 * 16);
  return x;
}

TEST(GeluCpu, NormalDistributionIsWithinItsBounds) {
  const std::vector<float> x = arguments();
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    std::vector<float> exact(x.size()), coarse(x.size());
    HWY_DYNAMIC_DISPATCH(normal_distribution)(x.data(), exact.data(), coarse.data(), x.size());
    hwy::SetSupportedTargetsForTest(0);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = 0.5 * std::erfc(-static_cast<double>(x[i]) * M_SQRT1_2);
      ASSERT_NEAR(exact[i], want, (x[i] < 0 ? 6.0 : 1.5) * ulp_of(want)) << x[i];
      ASSERT_NEAR(coarse[i], want, 4e-5 * want) << x[i];
    }
  }
}

}  // namespace
}  // namespace skein
#endif  // HWY_ONCE
