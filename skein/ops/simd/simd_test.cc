// Compares every instruction set of this machine with the scalar definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/simd/simd_test.cc"
#include "hwy/foreach_target.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/ops/simd/normals_cpu.h"
#include "skein/ops/simd/philox-inl.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;

// Rounding to nearest, rounding with noise, and exp.
void round_values(const float* from, const uint32_t* noise, bfloat16* nearest, bfloat16* noisy,
                  float* exponentials, size_t count) {
  const sm::F32 d;
  const sm::U32 u32;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const size_t n = HWY_MIN(hn::Lanes(d), count - i);
    const sm::VF32 value = sm::load(d, from + i, n);
    sm::store(value, d, nearest + i, n);
    sm::VU32 bits = hn::Zero(u32);
    if (n == hn::Lanes(d)) bits = hn::LoadU(u32, noise + i);
    sm::store_rounded(sm::round_to_bf16(value, bits), noisy + i, n);
    sm::store(sm::exp(value), d, exponentials + i, n);
  }
}

void coarse_values(const float* from, float* powers, float* reciprocals, size_t count) {
  const sm::F32 d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const sm::VF32 value = hn::LoadU(d, from + i);
    hn::StoreU(sm::coarse_exp2(value), d, powers + i);
    hn::StoreU(sm::coarse_reciprocal(value), d, reciprocals + i);
  }
}

void random_words(uint64_t seed, uint32_t stream, uint32_t step, uint64_t first, size_t count,
                  uint32_t* out) {
  std::vector<uint32_t> buffer(count + sm::kPhiloxSlack);
  const uint32_t* words = sm::philox_words(seed, RandomPurpose::kStochasticRounding, stream, step,
                                           first, count, buffer.data());
  std::copy(words, words + count, out);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(round_values);
HWY_EXPORT(coarse_values);
HWY_EXPORT(random_words);

class Simd : public testing::Test {
 protected:
  template <typename Body>
  static void on_every_target(const Body& body) {
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      hwy::SetSupportedTargetsForTest(target);
      detect_cpu_kind_again();
      body();
    }
    hwy::SetSupportedTargetsForTest(0);
    detect_cpu_kind_again();
  }
};

TEST_F(Simd, RoundsToBf16AsTheScalarDoes) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65537 * 31 + 7) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const uint32_t bits : {0x3f808000u, 0x3f818000u, 0x7f7fffffu, 0x7f800000u, 0xff800000u,
                              0x7f800001u, 0x7fffffffu, 0xffffffffu, 0x00000001u, 0x80000000u}) {
    values.push_back(std::bit_cast<float>(bits));
  }
  values.resize((values.size() + 15) / 16 * 16 + 16, 1.0f);
  const size_t count = values.size();
  std::vector<uint32_t> noise(count);
  for (size_t i = 0; i < count; ++i) noise[i] = static_cast<uint32_t>(i * 2654435761u);
  on_every_target([&] {
    std::vector<bfloat16> nearest(count), noisy(count);
    std::vector<float> unused(count);
    HWY_DYNAMIC_DISPATCH(round_values)
    (values.data(), noise.data(), nearest.data(), noisy.data(), unused.data(), count);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(nearest[i].bits, bfloat16(values[i]).bits) << values[i];
      const uint32_t word = std::bit_cast<uint32_t>(values[i]);
      if (std::isnan(values[i])) {
        ASSERT_TRUE(std::isnan(static_cast<float>(noisy[i])));
      } else {
        ASSERT_EQ(noisy[i].bits, (word + (noise[i] & 0xffff)) >> 16) << values[i];
      }
    }
  });
}

TEST_F(Simd, ExpIsWithinTwoUlp) {
  std::vector<float> values;
  for (double x = -87.3; x < 88.3; x += 0.00137) values.push_back(static_cast<float>(x));
  const size_t count = values.size() / 16 * 16;
  const std::vector<uint32_t> noise(count);
  on_every_target([&] {
    std::vector<bfloat16> unused(count);
    std::vector<float> got(count);
    HWY_DYNAMIC_DISPATCH(round_values)
    (values.data(), noise.data(), unused.data(), unused.data(), got.data(), count);
    for (size_t i = 0; i < count; ++i) {
      const double want = std::exp(static_cast<double>(values[i]));
      ASSERT_NEAR(got[i], want, 2 * want * 0x1p-23) << values[i];
    }
  });
}

TEST_F(Simd, ExpHoldsAtTheEnds) {
  const std::vector<float> values = {0.0f, -INFINITY, -1000.0f, -88.0f, 89.0f, INFINITY, NAN, 1.0f,
                                     0,    0,         0,        0,      0,     0,        0,   0};
  const std::vector<uint32_t> noise(16);
  on_every_target([&] {
    std::vector<bfloat16> unused(16);
    std::vector<float> got(16);
    HWY_DYNAMIC_DISPATCH(round_values)
    (values.data(), noise.data(), unused.data(), unused.data(), got.data(), 16);
    EXPECT_EQ(got[0], 1.0f);
    EXPECT_LT(got[1], 2e-38f);
    EXPECT_LT(got[2], 2e-38f);
    EXPECT_LT(got[3], 2e-38f);
    EXPECT_EQ(got[4], INFINITY);
    EXPECT_EQ(got[5], INFINITY);
    EXPECT_TRUE(std::isnan(got[6]));
  });
}

TEST_F(Simd, CoarseFunctionsAreWithinTheirBounds) {
  std::vector<float> values;
  for (double x = -126; x < 128; x += 0.00137) values.push_back(static_cast<float>(x));
  for (double x = 1; x <= 0x1p125; x *= 1.000731) values.push_back(static_cast<float>(x));
  const size_t count = values.size() / 16 * 16;
  on_every_target([&] {
    std::vector<float> powers(count), reciprocals(count);
    HWY_DYNAMIC_DISPATCH(coarse_values)(values.data(), powers.data(), reciprocals.data(), count);
    for (size_t i = 0; i < count; ++i) {
      const double x = values[i];
      if (x < 128) {
        ASSERT_NEAR(powers[i] / std::exp2(x), 1, 3.1e-6) << x;
      }
      if (x >= 1) {
        ASSERT_NEAR(reciprocals[i] * x, 1, 1e-5) << x;
      }
    }
  });
}

TEST_F(Simd, CoarsePowersHoldAtTheEnds) {
  std::vector<float> values = {0.0f,    1.0f,   -1.0f,     -126.0f, -126.01f,
                               -150.0f, -1e30f, -INFINITY, NAN};
  values.resize(16);
  on_every_target([&] {
    std::vector<float> got(16), unused(16);
    HWY_DYNAMIC_DISPATCH(coarse_values)(values.data(), got.data(), unused.data(), 16);
    EXPECT_EQ(got[0], 1.0f);
    EXPECT_EQ(got[1], 2.0f);
    EXPECT_EQ(got[2], 0.5f);
    EXPECT_EQ(got[3], 0x1p-126f);
    for (const int i : {4, 5, 6, 7}) EXPECT_EQ(got[i], 0.0f) << values[i];
    EXPECT_TRUE(std::isnan(got[8]));
  });
}

TEST_F(Simd, PhiloxIsThatOfBase) {
  const uint64_t seed = 0x123456789abcdef0, far = (uint64_t{1} << 34) - 3;  // words 0 and 1 carry
  const Philox philox(seed, RandomPurpose::kStochasticRounding, 0xfedcba98u, 77);
  on_every_target([&] {
    for (const uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{6}, uint64_t{4095}, far}) {
      for (const size_t count : {1u, 3u, 4u, 31u, 64u, 515u}) {
        std::vector<uint32_t> words(count);
        HWY_DYNAMIC_DISPATCH(random_words)(seed, 0xfedcba98u, 77, first, count, words.data());
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(words[i], philox.word(first + i)) << i;
      }
    }
  });
}

TEST_F(Simd, NormalsAreThoseOfBase) {
  const Philox philox(0x123456789abcdef0, RandomPurpose::kInitialize, 0xfedcba98u, 0);
  on_every_target([&] {
    for (const uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{6}, uint64_t{1} << 34}) {
      for (const size_t count : {1u, 3u, 4u, 31u, 1024u, 5000u}) {
        std::vector<float> normals(count);
        draw_normals(0x123456789abcdef0, RandomPurpose::kInitialize, 0xfedcba98u, first, 0.02f,
                     normals);
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(std::bit_cast<uint32_t>(normals[i]),
                    std::bit_cast<uint32_t>(0.02f * philox.normal(first + i)))
              << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace skein
#endif  // HWY_ONCE
