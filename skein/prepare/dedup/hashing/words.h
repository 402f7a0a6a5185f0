// The words of a text as deduplication compares them, each as a 64-bit hash.
//
// Formula  characters are lowered, decomposed (NFD) and freed of marks (Mn, Me) and of what is
//          invisible (Cf); a word is a longest run of letters, numbers and spacing marks
//          (categories L*, N*, Mc), and everything else separates. A number, digits (Nd) with at
//          most one fraction, is the character 0. Characters of scripts that put no spaces between
//          words (Han, kana, Thai, Lao, Khmer, Myanmar, Tibetan) are words by themselves. The hash
//          is xxh3-64 of the word's UTF-8. To the letter: docs/deduplication.md
// Memory   the longest word, and 4.4 MB that all share
// Cost     one table look-up a character, one hash a word; no allocation per word
// Threads  one at a time; each has a WordHasher of its own
// Source   the steps of `simplify_text` of datatrove, Hugging Face's library, which FineWeb used
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "skein/base/numbers/hash.h"
#include "skein/bpe/unicode/invalid_utf8.h"

namespace skein {

class WordHasher {
 public:
  WordHasher() : table_(table()) {}

  // Calls visit(hash) for every word of `text`, in order. What is not UTF-8 separates words.
  template <typename Visit>
  void for_each(std::string_view text, const Visit& visit) {
    for_each_word(text, [&](std::string_view word) { visit(hash_name(word)); });
  }

  // The same with the words themselves, which are valid during the call.
  template <typename Visit>
  void for_each_word(std::string_view text, const Visit& visit);

 private:
  enum Kind : uint8_t { kSeparator, kDecimalSeparator, kInvisible, kLetter, kDigit, kWord };

  // The kind of a character in the upper 8 bits, and what it becomes in the others.
  static const uint32_t* table();

  struct HashedCharacter {
    Kind kind;
    char32_t code;
    int size;  // bytes
  };
  HashedCharacter read(const char* at, const char* end) const {
    const utf8::Character character = utf8::decode(at, end);
    if (character.code == utf8::kInvalid) return {kSeparator, 0, character.size};
    const uint32_t entry = table_[character.code];
    return {static_cast<Kind>(entry >> 24), entry & 0xffffff, character.size};
  }
  const char* skip_digits(const char* at, const char* end) const;
  // Behind the number that begins at `at`.
  const char* skip_number(const char* at, const char* end) const;

  const uint32_t* table_;
  std::string word_;
};

template <typename Visit>
void WordHasher::for_each_word(std::string_view text, const Visit& visit) {
  word_.clear();
  const auto finish = [&] {
    if (word_.empty()) return;
    visit(std::string_view(word_));
    word_.clear();
  };
  const char* at = text.data();
  for (const char* const end = at + text.size(); at < end;) {
    const HashedCharacter character = read(at, end);
    at += character.size;
    switch (character.kind) {
      case kLetter:
        utf8::append(word_, character.code);
        break;
      case kDigit:
        word_.push_back('0');
        at = skip_number(at, end);
        break;
      case kWord:
        finish();
        utf8::append(word_, character.code);
        finish();
        break;
      case kInvisible:
        break;
      case kSeparator:
      case kDecimalSeparator:
        finish();
    }
  }
  finish();
}

}  // namespace skein
