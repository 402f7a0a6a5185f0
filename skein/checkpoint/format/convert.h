// Converts elements: F32, BF16, F16 and F64 to F32 or BF16; any dtype to itself.
//
// Formula  through float; to BF16 rounds to nearest, ties to even.
#pragma once

#include <cstdint>
#include <string_view>

#include "skein/tensor/dtype.h"

namespace skein {

// Whether elements of the safetensors dtype `source` can be read as `target`.
bool can_convert(std::string_view source, DType target);

// `source` need not be aligned. Precondition: can_convert.
void convert_elements(std::string_view source_dtype, const std::byte* source, DType target_dtype,
                      std::byte* target, int64_t count);

float half_to_float(uint16_t bits);

}  // namespace skein
