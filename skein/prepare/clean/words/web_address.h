// Whether a word is the address of a web page, which is then not split.
//
// Formula  [scheme://] [user[:password]@] host [:port] [/path], where a host is labels that end
//          with a top-level domain of small letters, or a public IPv4 address, in ASCII digits
// Cost     one pass over the word
// Source   the pattern in spaCy's tokenizer (version 3.8), after github.com/dperini's
#pragma once

#include <string_view>

#include "skein/prepare/clean/words/character_classes.h"

namespace skein {

bool is_web_address(std::string_view word, const CharacterReader& reader);

}  // namespace skein
