// What a character is to the rules of cleaning: white space, a letter, a sign that ends a sentence.
//
// Memory  4.4 MB that all share
// Source  character_classes.inc, which scripts/goldens/character_classes.py gets from spaCy's
//         English (letters, what splits words, ends of sentences), from datatrove (symbols,
//         terminal punctuation) and from Python (the others)
#pragma once

#include <cstdint>
#include <string_view>

#include "skein/bpe/unicode/invalid_utf8.h"

namespace skein {

namespace character {

enum Class : uint32_t {
  kSpace = 1U << 0,
  kLetter = 1U << 1,  // of a script that spaCy knows; kLower and kUpper hold those without case
  kLower = 1U << 2,
  kUpper = 1U << 3,
  kPrefix = 1U << 4,  // is split off where a word begins with it
  kSuffix = 1U << 5,  // and where it ends with it
  kIcon = 1U << 6,    // is a word by itself
  kQuote = 1U << 7,
  kBeforePeriod = 1U << 8,  // a period after it is a word by itself
  kCurrency = 1U << 9,
  kWord = 1U << 10,     // \w
  kDecimal = 1U << 11,  // \d
  kAlphabetic = 1U << 12,
  kSymbol = 1U << 13,    // a word of these alone does not count as one for Gopher
  kTerminal = 1U << 14,  // ends a line for FineWeb
  kSentenceEnd = 1U << 15,
  kPunctuation = 1U << 16,  // categories P*
};

}  // namespace character

// [code]: the classes of every code point up to U+10FFFF; made at the first call.
const uint32_t* character_classes();

// Characters of text that is UTF-8 all through, with their classes.
class CharacterReader {
 public:
  struct ClassifiedCharacter {
    char32_t code = 0;
    uint32_t classes = 0;
    int size = 0;  // bytes
  };

  CharacterReader() : classes_(character_classes()) {}

  // The character that begins at `at`, which is before `end`.
  ClassifiedCharacter first(const char* at, const char* end) const {
    const auto byte = static_cast<uint8_t>(*at);
    if (byte < 0x80) return {byte, classes_[byte], 1};
    const utf8::Character decoded = utf8::decode(at, end);
    if (decoded.code == utf8::kInvalid) return {utf8::kInvalid, 0, 1};
    return {decoded.code, classes_[decoded.code], decoded.size};
  }
  // The character that ends at `end`, which is behind `begin`.
  ClassifiedCharacter last(const char* begin, const char* end) const {
    const char* at = end - 1;
    while (at > begin && end - at < 4 && utf8::is_continuation(*at)) --at;
    return first(at, end);
  }

  // `text` without white space at its ends.
  std::string_view strip(std::string_view text) const { return strip_end(strip_begin(text)); }
  std::string_view strip_begin(std::string_view text) const;
  std::string_view strip_end(std::string_view text) const;

 private:
  const uint32_t* classes_;
};

// The number of characters of UTF-8.
int64_t count_characters(std::string_view text);

}  // namespace skein
