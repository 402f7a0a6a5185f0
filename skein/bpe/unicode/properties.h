// Sets of characters by name: what \p{…}, \w, \s and \d mean to `tokenizers`, from tables of our
// own, so that a token's id depends on no library's version of Unicode.
//
// Names   general categories (L, Lu, Uppercase_Letter …) and the larger scripts (Han, Cyrillic …);
//         case, blanks, `_` and `-` in a name do not count
// Source  categories.inc and sets.inc, which scripts/goldens/unicode_properties.py
//         gets from `tokenizers`
#pragma once

#include <string_view>

#include "skein/bpe/unicode/code_points.h"

namespace skein::bpe {

// Null: no such property here.
const CodePoints* unicode_property(std::string_view name);

const CodePoints& unicode_spaces();       // \s
const CodePoints& unicode_word();         // \w
const CodePoints& unicode_numeric();      // of the pre-tokenizer Digits
const CodePoints& unicode_punctuation();  // of the pre-tokenizer Punctuation
const CodePoints& unicode_added_word();   // of added tokens with single_word
const CodePoints& unicode_normal();       // what normalization forms may change or move

}  // namespace skein::bpe
