// The two 8-bit float formats of matrix products, and the scale that brings a tensor into their
// range.
//
// Formats  E4M3: 4 bits of exponent, 3 of mantissa, up to 448, no infinity. E5M2: 5 and 2, up to
//          57344. Both round to nearest, ties to even, and saturate; NaN stays NaN
// Scale    a power of two, 2^k with the largest k for which 2^k times the largest magnitude is in
//          range: what is rounded stays a bf16 number when the scale is taken back
// Source   Micikevicius et al., "FP8 formats for deep learning", arXiv:2209.05433; OCP OFP8 1.0
#pragma once

#include <bit>
#include <cstdint>

namespace skein {

struct Fp8Format {
  int mantissa_bits;
  int bias;  // of the exponent
  float largest;
  uint8_t nan;
};
inline constexpr Fp8Format kE4M3{3, 7, 448.0f, 0x7f};
inline constexpr Fp8Format kE5M2{2, 15, 57344.0f, 0x7f};

// What the sizes of a product of 8-bit operands must be multiples of on a GPU: cuBLASLt takes no
// others.
inline constexpr int64_t kFp8Multiple = 16;

constexpr float power_of_two_f32(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

constexpr uint8_t to_fp8(float value, const Fp8Format& format) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>(word >> 24 & 0x80);
  float size = std::bit_cast<float>(word & 0x7fffffffu);
  if (!(size <= std::bit_cast<float>(0x7f800000u))) return sign | format.nan;
  if (size > format.largest) size = format.largest;
  const int least = 1 - format.bias;  // exponent of the least normal number
  if (size < power_of_two_f32(least)) {
    // Adding 1.5 2^23 units leaves no bits below the unit of the subnormal numbers.
    const int unit = least - format.mantissa_bits;
    const float anchor = 1.5f * power_of_two_f32(unit + 23);
    const float rounded = (size + anchor) - anchor;
    return sign | static_cast<uint8_t>(rounded * power_of_two_f32(-unit));
  }
  const int dropped = 23 - format.mantissa_bits;
  uint32_t bits = std::bit_cast<uint32_t>(size);
  bits += (uint32_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1);
  bits >>= dropped;
  return sign | static_cast<uint8_t>(
                    bits - (static_cast<uint32_t>(127 - format.bias) << format.mantissa_bits));
}

constexpr float from_fp8(uint8_t code, const Fp8Format& format) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  const int size = code & 0x7f;
  if (size == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000u);
  const int exponent = size >> format.mantissa_bits;
  const int mantissa = size & ((1 << format.mantissa_bits) - 1);
  const int unit = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
  const int units = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
  const float value = static_cast<float>(units) * power_of_two_f32(unit);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

// from_fp8(to_fp8(value)) without building the code: a few operations that vectorize.
constexpr float round_to_fp8(float value, const Fp8Format& format) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t limit = std::bit_cast<uint32_t>(format.largest);
  uint32_t size = word & 0x7fffffffu;
  const bool is_nan = size > 0x7f800000u;
  size = size > limit ? limit : size;
  const uint32_t least = static_cast<uint32_t>(128 - format.bias) << 23;
  const uint32_t exponent = (size & 0x7f800000u) > least ? size & 0x7f800000u : least;
  // 1.5 2^23 units of the last kept bit: adding it leaves no bits below.
  const float anchor = std::bit_cast<float>(
      (exponent + (static_cast<uint32_t>(23 - format.mantissa_bits) << 23)) | 0x400000u);
  const float rounded = (std::bit_cast<float>(size) + anchor) - anchor;
  const uint32_t bits = is_nan ? 0x7fc00000u : std::bit_cast<uint32_t>(rounded);
  return std::bit_cast<float>(bits | (word & 0x80000000u));
}

// The exponent k of the scale for a tensor of this largest magnitude; 0 where it is 0 or not
// finite.
constexpr int fp8_scale_exponent(float largest, const Fp8Format& format) {
  if (!(largest > 0.0f) || !(largest < std::bit_cast<float>(0x7f800000u))) return 0;
  const auto exponent_of = [](float value) {
    return static_cast<int>(std::bit_cast<uint32_t>(value) >> 23) - 127;
  };
  // Subnormal floats count as 2^-127: the scale stays a float.
  int k = exponent_of(format.largest) - exponent_of(largest);
  if (k > 100) k = 100;
  if (largest * power_of_two_f32(k) > format.largest) --k;
  return k;
}

}  // namespace skein
