#include "skein/bpe/unicode/invalid_utf8.h"

#include <cstring>

namespace skein::utf8 {

size_t valid_prefix(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  constexpr uint64_t kTopBits = 0x8080808080808080;
  while (at < end) {
    uint64_t words[4];
    while (end - at >= 32 && (std::memcpy(words, at, 32),
                              ((words[0] | words[1] | words[2] | words[3]) & kTopBits) == 0)) {
      at += 32;
    }
    while (end - at >= 8 && (std::memcpy(words, at, 8), (words[0] & kTopBits) == 0)) at += 8;
    if (at == end) break;
    const Character character = decode(at, end);
    if (character.code == kInvalid) break;
    at += character.size;
  }
  return static_cast<size_t>(at - text.data());
}

namespace {

// The bytes at the beginning of `text`, which is not UTF-8, that begin no character; at least 1.
// More than 1: the text would be right up to there, if it went on.
size_t ill_formed_prefix(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0xe0 || first > 0xf4 || text.size() < 2) return 1;
  const uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < least || byte(1) > most) return 1;
  const bool is_third = first >= 0xf0 && text.size() >= 3 && is_continuation(text[2]);
  return is_third ? 3 : 2;
}

template <class PrefixBytes>
std::string replaced(std::string_view text, PrefixBytes&& prefix_bytes) {
  std::string valid;
  while (!text.empty()) {
    const size_t size = valid_prefix(text);
    valid += text.substr(0, size);
    text.remove_prefix(size);
    if (text.empty()) break;
    valid += kReplacement;
    text.remove_prefix(prefix_bytes(text));
  }
  return valid;
}

}  // namespace

std::string replace_invalid(std::string_view text) {
  return replaced(text, [](std::string_view) { return size_t{1}; });
}

std::string replace_ill_formed(std::string_view text) { return replaced(text, ill_formed_prefix); }

}  // namespace skein::utf8
