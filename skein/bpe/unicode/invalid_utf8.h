// Texts that may not be UTF-8: how far they are, and with U+FFFD for what is not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "skein/base/text/utf8.h"

namespace skein::utf8 {

inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// The bytes of `text` up to the first that is not UTF-8.
size_t valid_prefix(std::string_view text);

// `text` with U+FFFD for every byte that is not UTF-8, as SentencePiece has it.
std::string replace_invalid(std::string_view text);

// `text` with U+FFFD for every longest part that could have begun a character, as Unicode
// recommends and `tokenizers` has it.
std::string replace_ill_formed(std::string_view text);

}  // namespace skein::utf8
