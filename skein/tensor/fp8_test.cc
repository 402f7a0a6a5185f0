#include "skein/tensor/fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace skein {

void PrintTo(const Fp8Format& format, std::ostream* out) { *out << "largest " << format.largest; }

namespace {

class Fp8 : public testing::TestWithParam<Fp8Format> {};

TEST_P(Fp8, EveryNumberComesBack) {
  for (int code = 0; code < 256; ++code) {
    const float value = from_fp8(static_cast<uint8_t>(code), GetParam());
    if (std::isnan(value) || std::fabs(value) > GetParam().largest) continue;
    EXPECT_EQ(to_fp8(value, GetParam()), code) << value;
  }
}

// The nearest of all codes; on a tie, the one whose last bit is 0.
TEST_P(Fp8, RoundsToNearestEven) {
  const auto nearest = [&](float value) {
    int best = 0;
    for (int code = 0; code < 0x7f; ++code) {
      const float candidate = from_fp8(static_cast<uint8_t>(code), GetParam());
      if (candidate > GetParam().largest) break;
      const double distance = std::fabs(double{candidate} - value);
      const double so_far =
          std::fabs(double{from_fp8(static_cast<uint8_t>(best), GetParam())} - value);
      if (distance < so_far || (distance == so_far && code % 2 == 0)) best = code;
    }
    return best;
  };
  for (int code = 0; code < 0x7c; ++code) {
    const float here = from_fp8(static_cast<uint8_t>(code), GetParam());
    const float next = from_fp8(static_cast<uint8_t>(code + 1), GetParam());
    if (!(next <= GetParam().largest)) break;
    for (const float part : {0.1f, 0.4999f, 0.5f, 0.5001f, 0.9f}) {
      const float value = here + part * (next - here);
      EXPECT_EQ(to_fp8(value, GetParam()), nearest(value)) << value;
      EXPECT_EQ(to_fp8(-value, GetParam()), nearest(value) | 0x80) << -value;
    }
  }
}

TEST_P(Fp8, RoundingWithoutTheBitsIsTheSame) {
  uint32_t word = 1;
  for (int i = 0; i < 200000; ++i) {
    word = word * 1664525 + 1013904223;
    const float any = std::bit_cast<float>(word);
    const float near = static_cast<float>(static_cast<int32_t>(word)) * 0x1p-27f;  // -16 to 16
    for (const float value : {any, near, near * 0x1p-12f}) {
      const float expected = from_fp8(to_fp8(value, GetParam()), GetParam());
      const float found = round_to_fp8(value, GetParam());
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(found));
      } else {
        EXPECT_EQ(found, expected) << value;
      }
    }
  }
}

TEST_P(Fp8, SaturatesAndKeepsNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {GetParam().largest * 1.01f, 1e30f, infinity}) {
    EXPECT_EQ(from_fp8(to_fp8(value, GetParam()), GetParam()), GetParam().largest);
    EXPECT_EQ(from_fp8(to_fp8(-value, GetParam()), GetParam()), -GetParam().largest);
  }
  EXPECT_TRUE(std::isnan(from_fp8(to_fp8(std::nanf(""), GetParam()), GetParam())));
}

TEST_P(Fp8, TheScaleIsTheLargestPowerOfTwoInRange) {
  for (const float largest : {1e-20f, 3e-5f, 0.4375f, 0.875f, 1.0f, 1.75f, 1.76f, 447.0f, 1e30f}) {
    const int k = fp8_scale_exponent(largest, GetParam());
    EXPECT_LE(largest * std::ldexp(1.0, k), GetParam().largest) << largest;
    EXPECT_GT(largest * std::ldexp(1.0, k + 1), GetParam().largest) << largest;
  }
  EXPECT_EQ(fp8_scale_exponent(0.0f, GetParam()), 0);
  EXPECT_EQ(fp8_scale_exponent(std::numeric_limits<float>::infinity(), GetParam()), 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, Fp8, testing::Values(kE4M3, kE5M2),
                         [](const auto& info) { return info.index == 0 ? "E4M3" : "E5M2"; });

}  // namespace
}  // namespace skein
