#include "skein/tensor/dtype.h"

#include <array>
#include <utility>

namespace skein {
namespace {
constexpr std::array<std::pair<DType, std::string_view>, 4> kNames = {{
    {DType::kF32, "f32"},
    {DType::kBF16, "bf16"},
    {DType::kI32, "i32"},
    {DType::kF64, "f64"},
}};
}  // namespace

std::string_view dtype_name(DType dtype) {
  for (const auto& [value, name] : kNames) {
    if (value == dtype) return name;
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

}  // namespace skein
