// UTF-8, decoded as the Unicode standard has it: shortest forms, no surrogates, at most U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace skein::utf8 {

inline constexpr char32_t kInvalid = 0xffffffff;
inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

struct Character {
  char32_t code;  // kInvalid: not UTF-8, and of one byte
  int size;       // bytes
};

// The character that begins at `at`, which is before `end`.
inline Character decode(const char* at, const char* end) {
  const auto byte = [&](int i) { return static_cast<uint8_t>(at[i]); };
  const auto trails = [&](int i) { return (byte(i) & 0xc0) == 0x80; };
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
  return !text.empty() &&
         static_cast<size_t>(decode(text.data(), text.data() + text.size()).size) == text.size();
}

// The bytes of `text` up to the first that is not UTF-8.
size_t valid_prefix(std::string_view text);

// `text` with U+FFFD for every byte that is not UTF-8, as SentencePiece has it.
std::string replace_invalid(std::string_view text);

// `text` with U+FFFD for every longest part that could have begun a character, as Unicode
// recommends and `tokenizers` has it.
std::string replace_ill_formed(std::string_view text);

}  // namespace skein::utf8
