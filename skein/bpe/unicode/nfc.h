// Unicode's normalization forms: C composes characters where it can, D takes them apart, KC and KD
// also those that only look like others.
//
// Cost    text whose characters cannot change is only looked through
// Source  Unicode Standard Annex 15, by libutf8proc; `tokenizers`, whose tables are of Unicode 9:
//         what came later stays, by unicode_normal(), whatever version libutf8proc has
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skein::bpe {

enum class NormalForm : uint8_t { kC, kD, kKc, kKd };

enum class NfcOf : uint8_t {
  kLatest,    // that libutf8proc knows
  kUnicode9,  // characters that came later stay as and where they are, and part what is around them
};

// `text`, which is UTF-8, in form C: itself, or what `composed` then holds.
std::string_view to_nfc(std::string_view text, std::string& composed,
                        NfcOf version = NfcOf::kLatest);

// In `form`, of Unicode 9: itself, or what `out` then holds.
std::string_view to_normal_form(std::string_view text, NormalForm form, std::string& out);

}  // namespace skein::bpe
