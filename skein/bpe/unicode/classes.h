// What \p{L}, \p{N} and \s mean to the patterns that split a text into words.
//
// Source  ranges.inc, which scripts/goldens/unicode_classes.py gets from `tokenizers`
#pragma once

#include <cstdint>

namespace skein::bpe {

enum class Class : uint8_t { kOther, kLetter, kNumber, kSpace };

// [code]: of every code point up to U+10FFFF; made at the first call.
const Class* unicode_classes();

}  // namespace skein::bpe
