#include "skein/bpe/unicode/byte_alphabet.h"

#include <unordered_map>

#include "skein/bpe/unicode/invalid_utf8.h"

namespace skein::bpe {

const std::array<char32_t, 256>& byte_alphabet() {
  static const std::array<char32_t, 256> codes = [] {
    std::array<char32_t, 256> all;
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool is_visible = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      all[byte] = is_visible ? byte : next++;
    }
    return all;
  }();
  return codes;
}

bool from_byte_level(std::string_view spelled, std::string& bytes) {
  static const std::unordered_map<char32_t, char> kBytes = [] {
    std::unordered_map<char32_t, char> map;
    for (size_t byte = 0; byte < 256; ++byte) {
      map.emplace(byte_alphabet()[byte], static_cast<char>(byte));
    }
    return map;
  }();
  const char* const end = spelled.data() + spelled.size();
  for (const char* at = spelled.data(); at < end;) {
    const utf8::Character character = utf8::decode(at, end);
    const auto found = kBytes.find(character.code);
    if (found == kBytes.end()) return false;
    bytes.push_back(found->second);
    at += character.size;
  }
  return true;
}

std::string to_byte_level(std::string_view bytes) {
  std::string spelled;
  for (const char byte : bytes) utf8::append(spelled, byte_alphabet()[static_cast<uint8_t>(byte)]);
  return spelled;
}

}  // namespace skein::bpe
