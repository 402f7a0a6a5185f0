#include "skein/base/text/visible_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace skein {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: not UTF-8
};

// The character at the front of `text`; refuses longer encodings than needed, and surrogates.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = code << 6 | (next & 0x3F);
  }
  const uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code < least || code > 0x10FFFF || surrogate ? Character{} : Character{code, bytes};
}

bool has_no_picture(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return first <= code && code <= last;
  };
  return code < 0x20 || within(0x7F, 0x9F) || code == 0xAD || within(0x200B, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2060, 0x206F) || code == 0xFEFF ||
         within(0xE0000, 0xE0FFF);
}

std::string escaped(uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
}

}  // namespace

std::string visible_text(std::string_view text, int64_t max_characters) {
  std::string visible;
  for (int64_t count = 0; !text.empty(); ++count) {
    if (count == max_characters) return visible + "…";
    const Character character = first_character(text);
    const size_t bytes = std::max<size_t>(1, character.bytes);
    if (character.bytes == 0) {
      visible += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (has_no_picture(character.code)) {
      visible += escaped(character.code);
    } else {
      visible += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return visible;
}

std::string visible_line(std::string_view text) {
  return visible_text(text, std::numeric_limits<int64_t>::max());
}

std::string visible_lines(std::string_view text) {
  std::string visible;
  while (true) {
    const size_t end = text.find('\n');
    visible += visible_line(text.substr(0, end));
    if (end == text.npos) return visible;
    visible += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string terminal_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Character character = first_character(text);
    const size_t bytes = std::max<size_t>(1, character.bytes);
    const uint32_t code = character.code;
    const bool is_control = (code < 0x20 && code != '\n' && code != '\t') ||
                            (code >= 0x7F && code <= 0x9F) || (code >= 0x202A && code <= 0x202E) ||
                            (code >= 0x2066 && code <= 0x2069);
    shown += is_control || character.bytes == 0 ? visible_line(text.substr(0, bytes))
                                                : std::string(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return shown;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = first_character(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string escape_invalid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t bytes = first_character(text).bytes;
    if (bytes == 0) {
      valid += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else {
      valid += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(1, bytes));
  }
  return valid;
}

}  // namespace skein
