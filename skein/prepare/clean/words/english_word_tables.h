// What EnglishWords looks up: exceptions, sequences of words that spell one, units after numbers.
//
// Memory   200 kB that all share
// Threads  made once; then any number read
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "skein/base/numbers/hash.h"

namespace skein {

class EnglishWordTables {
 public:
  using PartSizes = std::vector<uint8_t>;  // in bytes, of the words that an exception is split into

  static const EnglishWordTables& get();

  // Null: `word` is no exception.
  const PartSizes* find_exception(std::string_view word) const {
    if (word.size() >= 64) return nullptr;
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(word[i]); };
    const uint64_t sizes =
        sizes_by_first_byte_[byte(0)] & sizes_by_last_byte_[byte(word.size() - 1)];
    return (sizes >> word.size() & 1) == 0 ? nullptr : find_exception_of_size(word);
  }

  // Words that exceptions are split into without exceptions, each sequence as a chain of numbers.
  using PhraseId = uint32_t;
  static constexpr PhraseId kNoPhrase = 0, kNone = UINT32_MAX;
  // The phrase that `phrase` becomes with another word; kNone: there is none.
  PhraseId next(PhraseId phrase, std::string_view word) const {
    if (phrase == kNoPhrase && !may_begin_phrase_[static_cast<uint8_t>(word[0])]) return kNone;
    const auto found = phrases_.find(key(phrase, word));
    return found == phrases_.end() ? kNone : found->second;
  }
  bool is_whole(PhraseId phrase) const { return phrase_kinds_[phrase] != kPart; }
  // Whether the exception is split otherwise than into the phrase.
  bool differs(PhraseId phrase) const { return phrase_kinds_[phrase] == kOtherwise; }

  // The size of the unit or currency that `word` ends with, right after a digit; 0: it does not.
  size_t unit_size(std::string_view word) const;

 private:
  enum PhraseKind : uint8_t { kPart, kSame, kOtherwise };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return hash_name(text); }
  };

  EnglishWordTables();
  const PartSizes* find_exception_of_size(std::string_view word) const;
  void add_phrases();
  static uint64_t key(PhraseId phrase, std::string_view word) {
    return hash_name(word) ^ (phrase * 0x9e3779b97f4a7c15);
  }

  std::unordered_map<std::string, PartSizes, Hash, std::equal_to<>> exceptions_;
  std::array<uint64_t, 256> sizes_by_first_byte_{}, sizes_by_last_byte_{};  // a bit a size
  std::unordered_map<uint64_t, PhraseId> phrases_;
  std::vector<PhraseKind> phrase_kinds_;
  std::array<bool, 256> may_begin_phrase_{};
};

}  // namespace skein
