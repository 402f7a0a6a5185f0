// The regular expressions with which tokenizers split a text into words, as code.
//
//   gpt2     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   llama3   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//            ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//   qwen2    the same with \p{N} in place of \p{N}{1,3}
//
// Text     UTF-8; every byte of it is in one word
// Cost     a few ns a word where words are ASCII
// Source   the pre_tokenizer of the models' tokenizer.json
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "skein/bpe/steps/split_window.h"
#include "skein/bpe/unicode/classes.h"
#include "skein/bpe/unicode/invalid_utf8.h"

namespace skein::bpe {

class SplitPattern {
 public:
  using Kind = PatternKind;

  explicit SplitPattern(Kind kind) : kind_(kind), classes_(unicode_classes()) {}

  // The pattern that a tokenizer.json spells so; none: it is not one of the above.
  static std::optional<Kind> named(std::string_view regular_expression);
  static std::string_view regular_expression(Kind kind);

  // Calls visit(end_of_word), and end_of_word(at, end) is the end of the word that begins at `at`,
  // which is before `end`: compiled for each pattern, into the caller's loop. Each call is for the
  // word behind that of the call before; to go back or elsewhere takes another end_of_word.
  template <class Visit>
  void with_end_of_word(Visit&& visit) const {
    switch (kind_) {
      case Kind::kGpt2:
        return visit(EndOfWord<Kind::kGpt2>{*this});
      case Kind::kLlama3:
        return visit(EndOfWord<Kind::kLlama3>{*this});
      case Kind::kQwen2:
        return visit(EndOfWord<Kind::kQwen2>{*this});
    }
  }

  // The same for one word, wherever it lies, without looking at more than it needs.
  template <Kind kKind>
  const char* end_of_word(const char* at, const char* end) const;

 private:
  template <Kind kKind>
  struct EndOfWord {
    const SplitPattern& pattern;
    const char* window = nullptr;
    uint64_t ends = 0;  // of words in the window

    const char* operator()(const char* at, const char* end) {
      if (ends == 0) {
        if (end - at < static_cast<ptrdiff_t>(kWindowBytes)) {
          return pattern.end_of_word<kKind>(at, end);
        }
        window = at;
        ends = word_starts(kKind, at) & ~uint64_t{1};
        if (ends == 0) return pattern.end_of_word<kKind>(at, end);
      }
      const char* const behind = window + std::countr_zero(ends);
      ends &= ends - 1;
      return behind;
    }
  };

  template <Kind kKind>
  const char* end_of_spaces(const char* at, const char* end) const;
  const char* end_of_run(Class its_class, const char* at, const char* end) const;
  const char* end_of_letters(const char* at, const char* end) const;
  Class class_at(const char* at, const char* end, int& size) const;

  Kind kind_;
  const Class* classes_;
};

namespace internal {

inline bool is_newline(char c) { return c == '\r' || c == '\n'; }

}  // namespace internal

inline Class SplitPattern::class_at(const char* at, const char* end, int& size) const {
  const auto first = static_cast<uint8_t>(*at);
  if (first < 0x80) {
    size = 1;
    return classes_[first];
  }
  const utf8::Character character = utf8::decode(at, end);
  size = character.size;
  return character.code == utf8::kInvalid ? Class::kOther : classes_[character.code];
}

// Eight bytes at a time while they are ASCII letters.
inline const char* SplitPattern::end_of_letters(const char* at, const char* end) const {
  constexpr uint64_t kOnes = 0x0101010101010101;
  while (at < end) {
    if (end - at >= 8) {
      uint64_t eight;
      std::memcpy(&eight, at, 8);
      const uint64_t lower = (eight | 0x20 * kOnes) & 0x7f * kOnes;
      const uint64_t from_a = lower + (0x80 - 'a') * kOnes;  // the top bit of each byte tells
      const uint64_t behind_z = lower + (0x7f - 'z') * kOnes;
      const uint64_t others = ~(from_a & ~behind_z & ~eight) & 0x80 * kOnes;
      if (others == 0) {
        at += 8;
        continue;
      }
      at += std::countr_zero(others) / 8;
      if (static_cast<uint8_t>(*at) < 0x80) return at;
    }
    int size = 0;
    if (class_at(at, end, size) != Class::kLetter) return at;
    at += size;
  }
  return at;
}

inline const char* SplitPattern::end_of_run(Class its_class, const char* at,
                                            const char* end) const {
  if (its_class == Class::kLetter) return end_of_letters(at, end);
  int size = 0;
  while (at < end && class_at(at, end, size) == its_class) at += size;
  return at;
}

// Where a run of white space begins that no letter or sign takes along.
template <SplitPattern::Kind kKind>
const char* SplitPattern::end_of_spaces(const char* at, const char* end) const {
  const char* behind = at;
  const char* last = at;          // the run's last character
  const char* newline = nullptr;  // behind the run's last newline
  int size = 0;
  while (behind < end && class_at(behind, end, size) == Class::kSpace) {
    if (internal::is_newline(*behind)) newline = behind + 1;
    last = behind;
    behind += size;
  }
  if (kKind != Kind::kGpt2 && newline != nullptr) return newline;
  if (behind == end || last == at) return behind;
  return last;  // which the next word takes along, or is
}

template <SplitPattern::Kind kKind>
const char* SplitPattern::end_of_word(const char* at, const char* end) const {
  constexpr bool kIsGpt2 = kKind == Kind::kGpt2;
  const char c = *at;
  if (c == '\'') {
    const char* const behind = end_of_contraction(at, end, !kIsGpt2);
    if (behind != at) return behind;
  }
  int size = 0;
  const Class first = class_at(at, end, size);
  const char* const next = at + size;
  if (first == Class::kLetter) return end_of_letters(next, end);
  if (first == Class::kNumber) {
    if (kIsGpt2) return end_of_run(first, next, end);
    const char* behind = next;
    for (int digits = 1; kKind == Kind::kLlama3 && digits < 3 && behind < end; ++digits) {
      if (class_at(behind, end, size) != Class::kNumber) break;
      behind += size;
    }
    return behind;
  }
  const Class second = next < end ? class_at(next, end, size) : Class::kSpace;
  if (kIsGpt2 ? c == ' ' : !internal::is_newline(c)) {  // goes with letters behind it
    if (second == Class::kLetter) return end_of_letters(next + size, end);
    if (kIsGpt2 && second == Class::kNumber) return end_of_run(second, next, end);
  }
  if (first == Class::kOther || (c == ' ' && second == Class::kOther)) {
    const char* behind = end_of_run(Class::kOther, next, end);
    while (!kIsGpt2 && behind < end && internal::is_newline(*behind)) ++behind;
    return behind;
  }
  return end_of_spaces<kKind>(at, end);
}

}  // namespace skein::bpe
