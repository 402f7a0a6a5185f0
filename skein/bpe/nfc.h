// Unicode's normalization form C: characters composed where they can be.
//
// Cost    text whose characters cannot change is only looked through
// Source  Unicode Standard Annex 15, by libutf8proc; `tokenizers`, whose tables are of Unicode 9
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skein::bpe {

enum class NfcOf : uint8_t {
  kLatest,    // that libutf8proc knows
  kUnicode9,  // characters that came later stay as and where they are, and part what is around them
};

// `text`, which is UTF-8, in form C: itself, or what `composed` then holds.
std::string_view to_nfc(std::string_view text, std::string& composed,
                        NfcOf version = NfcOf::kLatest);

}  // namespace skein::bpe
