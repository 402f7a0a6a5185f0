// UTF-8, one character at a time, as the Unicode standard has it: shortest forms, no surrogates, at
// most U+10FFFF. Whole texts: visible_text.h, and bpe/unicode/invalid_utf8.h, which replaces bad
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace skein::utf8 {

inline constexpr char32_t kInvalid = 0xffffffff;

struct Character {
  char32_t code;  // kInvalid: not UTF-8, and of one byte
  int size;       // bytes
};

// Whether `byte` is inside a character, as its second, third or fourth byte.
inline bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

// The last byte at or before `position` that begins a character: a place to cut `text`. The size of
// `text` is such a place.
inline size_t character_start(std::string_view text, size_t position) {
  while (position > 0 && position < text.size() && is_continuation(text[position])) --position;
  return position;
}

// The first byte at or after `position` that begins a character, or the size of `text`.
inline size_t next_character_start(std::string_view text, size_t position) {
  while (position < text.size() && is_continuation(text[position])) ++position;
  return position;
}

// The character that begins at `at`, which is before `end`.
inline Character decode(const char* at, const char* end) {
  const auto byte = [&](int i) { return static_cast<uint8_t>(at[i]); };
  const auto trails = [&](int i) { return is_continuation(at[i]); };
  const uint8_t first = byte(0);
  const auto left = end - at;
  if (first < 0x80) return {first, 1};
  if (first >= 0xc2 && first < 0xe0 && left >= 2 && trails(1)) {
    return {static_cast<char32_t>((first & 0x1f) << 6 | (byte(1) & 0x3f)), 2};
  }
  if (first >= 0xe0 && first < 0xf0 && left >= 3 && trails(1) && trails(2)) {
    const char32_t code = (first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    if (code >= 0x800 && (code < 0xd800 || code > 0xdfff)) return {code, 3};
  }
  if (first >= 0xf0 && first < 0xf5 && left >= 4 && trails(1) && trails(2) && trails(3)) {
    const char32_t code =
        (first & 0x7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
    if (code >= 0x10000 && code <= 0x10ffff) return {code, 4};
  }
  return {kInvalid, 1};
}

inline Character first_character(std::string_view text) {
  return decode(text.data(), text.data() + text.size());
}

// The last character of `text`, which is not empty.
inline Character last_character(std::string_view text) {
  return first_character(text.substr(character_start(text, text.size() - 1)));
}

inline size_t num_characters(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += is_continuation(byte) ? 0 : 1;
  return count;
}

inline void append(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  }
}

inline bool is_one_character(std::string_view text) {
  return !text.empty() && static_cast<size_t>(first_character(text).size) == text.size();
}

}  // namespace skein::utf8
