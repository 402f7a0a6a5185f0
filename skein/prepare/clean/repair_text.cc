#include "skein/prepare/clean/repair_text.h"

#include <algorithm>
#include <array>

#include "skein/bpe/unicode/invalid_utf8.h"
#include "skein/bpe/unicode/nfc.h"

namespace skein {
namespace {

// The characters of bytes 0x80 to 0x9f in Windows-1252; where it has none, Latin-1's.
constexpr std::array<char32_t, 32> kWindows1252 = {
    0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8d,   0x017d, 0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178};

// The byte that Windows-1252 shows as `code`; -1: none.
int byte_of(char32_t code) {
  if (code >= 0x80 && code <= 0xff) return static_cast<int>(code);  // controls as Latin-1 has them
  const auto found = std::find(kWindows1252.begin(), kWindows1252.end(), code);
  return found == kWindows1252.end() ? -1 : static_cast<int>(0x80 + (found - kWindows1252.begin()));
}

// Whether a character that was decoded twice may be put in place of its parts.
bool is_certain(char32_t code) {
  return (code >= 0x80 && code <= 0xff) || (code >= 0x2000 && code <= 0x2bff) || code == 0xfeff ||
         (code >= 0x1f000 && code <= 0x1faff);
}

// The character whose UTF-8 the characters at `at` are, and the bytes that these take.
utf8::Character decode_again(const char* at, const char* end) {
  std::array<char, 4> bytes{};
  int num_bytes = 0;
  int size = 0;
  while (num_bytes < 4 && at + size < end) {
    const utf8::Character part = utf8::decode(at + size, end);
    const int byte = part.code == utf8::kInvalid ? -1 : byte_of(part.code);
    if (byte < 0) break;
    bytes[static_cast<size_t>(num_bytes++)] = static_cast<char>(byte);
    size += part.size;
    const utf8::Character whole = utf8::decode(bytes.data(), bytes.data() + num_bytes);
    if (whole.code == utf8::kInvalid) continue;
    return is_certain(whole.code) ? utf8::Character{whole.code, size}
                                  : utf8::Character{utf8::kInvalid, 1};
  }
  return {utf8::kInvalid, 1};
}

bool is_removed(char32_t code) {
  return code < 0x09 || code == 0x0b || (code >= 0x0e && code <= 0x1f) || code == 0x7f ||
         (code >= 0x206a && code <= 0x206f) || code == 0xfeff || (code >= 0xfff9 && code <= 0xfffc);
}

bool is_line_end(char32_t code) {
  return code == '\r' || code == 0x85 || code == 0x2028 || code == 0x2029;
}

bool is_plain(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return (byte >= 0x20 && byte < 0x7f) || byte == '\n' || byte == '\t' || byte == '\f';
}

}  // namespace

std::string_view repair_text(std::string_view text, std::string& repaired) {
  const auto first = std::find_if_not(text.begin(), text.end(), is_plain);
  if (first == text.end()) return text;
  std::string out(text.begin(), first);
  const char* at = text.data() + out.size();
  const char* const end = text.data() + text.size();
  while (at < end) {
    utf8::Character character = utf8::decode(at, end);
    if (character.code >= 0x80) {
      const utf8::Character again = decode_again(at, end);
      if (again.code != utf8::kInvalid) character = again;
    }
    const bool is_cr_lf = *at == '\r' && at + 1 < end && at[1] == '\n';
    at += is_cr_lf ? 2 : character.size;
    if (is_line_end(character.code)) {
      out += '\n';
    } else if (!is_removed(character.code)) {
      utf8::append(out, character.code);
    }
  }
  std::string composed;
  const std::string_view form_c = bpe::to_nfc(out, composed);
  if (form_c == text) return text;
  repaired = form_c;
  return repaired;
}

}  // namespace skein
