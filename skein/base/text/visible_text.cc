#include "skein/base/text/visible_text.h"

#include <fmt/format.h>

#include <limits>

#include "skein/base/text/utf8.h"

namespace skein {
namespace {

bool is_printable(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) {
    return first <= code && code <= last;
  };
  return !(code < 0x20 || within(0x7F, 0x9F) || code == 0xAD || within(0x200B, 0x200F) ||
           within(0x2028, 0x202E) || within(0x2060, 0x206F) || code == 0xFEFF ||
           within(0xE0000, 0xE0FFF));
}

std::string escaped_byte(char byte) {
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

std::string escaped(char32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      return code < 0x80 ? escaped_byte(static_cast<char>(code))
                         : fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
  }
}

}  // namespace

std::string visible_text(std::string_view text, int64_t max_characters) {
  std::string visible;
  for (int64_t count = 0; !text.empty(); ++count) {
    if (count == max_characters) return visible + "…";
    const auto [code, size] = utf8::first_character(text);
    if (code == utf8::kInvalid) {
      visible += escaped_byte(text[0]);
    } else if (is_printable(code)) {
      visible += text.substr(0, static_cast<size_t>(size));
    } else {
      visible += escaped(code);
    }
    text.remove_prefix(static_cast<size_t>(size));
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
    const auto [code, size] = utf8::first_character(text);
    const std::string_view character = text.substr(0, static_cast<size_t>(size));
    const bool is_control = (code < 0x20 && code != '\n' && code != '\t') ||
                            (code >= 0x7F && code <= 0x9F) || (code >= 0x202A && code <= 0x202E) ||
                            (code >= 0x2066 && code <= 0x2069);
    shown +=
        is_control || code == utf8::kInvalid ? visible_line(character) : std::string(character);
    text.remove_prefix(character.size());
  }
  return shown;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto [code, size] = utf8::first_character(text);
    if (code == utf8::kInvalid) return false;
    text.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

std::string escape_invalid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const auto [code, size] = utf8::first_character(text);
    if (code == utf8::kInvalid) {
      valid += escaped_byte(text[0]);
    } else {
      valid += text.substr(0, static_cast<size_t>(size));
    }
    text.remove_prefix(static_cast<size_t>(size));
  }
  return valid;
}

}  // namespace skein
