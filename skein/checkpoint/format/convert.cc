#include "skein/checkpoint/format/convert.h"

#include <cstring>

#include "skein/base/error.h"
#include "skein/checkpoint/format/safetensors.h"

namespace skein {
namespace {

struct HalfFloat {
  uint16_t bits;
  explicit operator float() const { return half_to_float(bits); }
};

template <typename From, typename To>
void convert_run(const std::byte* source, std::byte* target, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From from;
    std::memcpy(&from, source + i * sizeof(From), sizeof(From));
    const To to(static_cast<float>(from));
    std::memcpy(target + i * sizeof(To), &to, sizeof(To));
  }
}

template <typename To>
void convert_to(std::string_view dtype, const std::byte* source, std::byte* target, int64_t count) {
  if (dtype == "F32") return convert_run<float, To>(source, target, count);
  if (dtype == "BF16") return convert_run<bfloat16, To>(source, target, count);
  if (dtype == "F16") return convert_run<HalfFloat, To>(source, target, count);
  if (dtype == "F64") return convert_run<double, To>(source, target, count);
}

}  // namespace

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  }
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

bool can_convert(std::string_view source, DType target) {
  if (source == to_safetensors_dtype(target)) return true;
  const bool from = source == "F32" || source == "BF16" || source == "F16" || source == "F64";
  return from && (target == DType::kF32 || target == DType::kBF16);
}

void convert_elements(std::string_view source_dtype, const std::byte* source, DType target_dtype,
                      std::byte* target, int64_t count) {
  if (source_dtype == to_safetensors_dtype(target_dtype)) {
    std::memcpy(target, source, static_cast<size_t>(count * size_of(target_dtype)));
  } else if (target_dtype == DType::kF32) {
    convert_to<float>(source_dtype, source, target, count);
  } else if (target_dtype == DType::kBF16) {
    convert_to<bfloat16>(source_dtype, source, target, count);
  } else {
    fail(ErrorCode::kInternal, "no conversion from {} to {}", source_dtype,
         dtype_name(target_dtype));
  }
}

}  // namespace skein
