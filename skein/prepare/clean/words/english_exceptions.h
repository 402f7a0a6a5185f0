// Strings that English splits otherwise than by rule, or not at all: "don't" is do and n't, "Mr."
// and ":-)" are one word.
//
// Source  the behaviour of spaCy's blank English pipeline (version 3.8), which datatrove's filters
//         count words with; scripts/goldens/english_words.py compares every string with it
#pragma once

#include <map>
#include <string>
#include <vector>

namespace skein {

// From each string to the sizes in bytes of the words that it is split into.
const std::map<std::string, std::vector<size_t>>& english_exceptions();

}  // namespace skein
