// Whether bytes are UTF-8, sixteen at a time.
// Source   Keiser, Lemire: Validating UTF-8 In Less Than One Instruction Per Byte, 2020
#pragma once

#include <string_view>

namespace skein {

bool is_utf8_simd(std::string_view text);

}  // namespace skein
