// Element types, and bfloat16 as a plain struct.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace skein {

enum class DType : uint8_t { kF32, kBF16, kI32, kF64 };

constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
      return 2;
    case DType::kF64:
      return 8;
  }
  return 0;
}

// "f32", "bf16", "i32", "f64": the names of the text form.
std::string_view dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

// The upper half of a float.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  // Round to nearest, ties to even; NaN stays NaN.
  constexpr explicit bfloat16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((word >> 16) | 0x40);
    } else {
      bits = static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
    }
  }
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  bool operator==(const bfloat16&) const = default;
};

}  // namespace skein
