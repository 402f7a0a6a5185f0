#include "skein/bpe/utf8.h"

#include <cstring>

namespace skein::utf8 {

size_t valid_prefix(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    uint64_t eight;
    while (end - at >= 8 && (std::memcpy(&eight, at, 8), (eight & 0x8080808080808080) == 0))
      at += 8;
    if (at == end) break;
    const Character character = decode(at, end);
    if (character.code == kInvalid) break;
    at += character.size;
  }
  return static_cast<size_t>(at - text.data());
}

std::string replace_invalid(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t size = valid_prefix(text);
    valid += text.substr(0, size);
    text.remove_prefix(size);
    if (text.empty()) break;
    valid += kReplacement;
    text.remove_prefix(1);
  }
  return valid;
}

}  // namespace skein::utf8
