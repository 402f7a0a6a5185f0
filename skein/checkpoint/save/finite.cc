#include "skein/checkpoint/save/finite.h"

#include <algorithm>
#include <cstring>

#include "skein/base/error.h"

namespace skein {
namespace {

// Infinity and NaN have all exponent bits set. Returns the index of the first such value, or the
// number of values if there is none.
template <typename Word, Word kExponent>
size_t first_not_finite(std::span<const std::byte> bytes) {
  constexpr size_t kBlock = 1024;  // compared without branches, so that the loop vectorizes
  const size_t count = bytes.size() / sizeof(Word);
  const auto word_at = [&](size_t i) {
    Word word;
    std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
    return word;
  };
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(count, begin + kBlock);
    Word found = 0;
    for (size_t i = begin; i < end; ++i) {
      found |= static_cast<Word>((word_at(i) & kExponent) == kExponent);
    }
    if (found == 0) continue;
    for (size_t i = begin; i < end; ++i) {
      if ((word_at(i) & kExponent) == kExponent) return i;
    }
  }
  return count;
}

size_t first_not_finite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kF32:
      return first_not_finite<uint32_t, 0x7f800000u>(bytes);
    case DType::kBF16:
      return first_not_finite<uint16_t, 0x7f80u>(bytes);
    case DType::kF64:
      return first_not_finite<uint64_t, 0x7ff0000000000000u>(bytes);
    case DType::kI32:
      break;
  }
  return bytes.size() / static_cast<size_t>(size_of(dtype));
}

// Tells NaN from infinity: only NaN has fraction bits.
bool is_nan(DType dtype, const std::byte* value) {
  uint64_t bits = 0;
  std::memcpy(&bits, value, static_cast<size_t>(size_of(dtype)));
  const int fraction_bits = dtype == DType::kF64 ? 52 : dtype == DType::kF32 ? 23 : 7;
  return (bits & ((uint64_t{1} << fraction_bits) - 1)) != 0;
}

}  // namespace

bool is_finite(DType dtype, std::span<const std::byte> values) {
  const size_t count = values.size() / static_cast<size_t>(size_of(dtype));
  return first_not_finite(dtype, values) == count;
}

void check_finite(const std::string& tensor, DType dtype, std::span<const std::byte> values) {
  const size_t at = first_not_finite(dtype, values);
  const size_t begin = at * static_cast<size_t>(size_of(dtype));
  if (begin == values.size()) return;
  fail(ErrorCode::kNotFinite,
       "tensor \"{}\" holds {} (value {} of the {} that this rank stores): training has broken "
       "down, continue from an earlier checkpoint with a lower optimizer.learning_rate",
       tensor, is_nan(dtype, values.data() + begin) ? "nan" : "infinity", at,
       values.size() / static_cast<size_t>(size_of(dtype)));
}

}  // namespace skein
