// Unicode's normalization form C: characters composed where they can be.
//
// Cost    text whose characters cannot change is only looked through
// Source  Unicode Standard Annex 15, by libutf8proc
#pragma once

#include <string>
#include <string_view>

namespace skein::bpe {

// `text`, which is UTF-8, in form C: itself, or what `composed` then holds.
std::string_view to_nfc(std::string_view text, std::string& composed);

}  // namespace skein::bpe
