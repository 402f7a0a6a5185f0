#include "skein/jinja/syntax/literals.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

int digit_of(char c) {
  if (is_ascii_digit(c)) return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
}

// (_?[digits of `base`])* from `at` on.
size_t digits_end(std::string_view text, size_t at, int base) {
  for (;;) {
    size_t next = at;
    if (next < text.size() && text[next] == '_') ++next;
    if (next >= text.size() || digit_of(text[next]) >= base) return at;
    at = next + 1;
  }
}

// (\d+_)*\d+ from `at` on, where a digit stands.
size_t group_end(std::string_view text, size_t at) {
  while (at < text.size() &&
         (is_ascii_digit(text[at]) ||
          (text[at] == '_' && at + 1 < text.size() && is_ascii_digit(text[at + 1])))) {
    ++at;
  }
  return at;
}

bool digit_at(std::string_view text, size_t at) {
  return at < text.size() && is_ascii_digit(text[at]);
}

// Where the fraction or the power ends; 0 where the number is whole.
size_t float_end(std::string_view text) {
  size_t end = group_end(text, 0);
  const bool fraction = end < text.size() && text[end] == '.' && digit_at(text, end + 1);
  if (fraction) end = group_end(text, end + 1);
  size_t power = end;
  if (power < text.size() && (text[power] | 0x20) == 'e') {
    ++power;
    if (power < text.size() && (text[power] == '+' || text[power] == '-')) ++power;
    if (digit_at(text, power)) return group_end(text, power);
  }
  return fraction ? end : 0;
}

std::string without_underscores(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c != '_') made += c;
  }
  return made;
}

Value integer_at(std::string_view text, int base) {
  int64_t value = 0;
  const std::string digits = without_underscores(text);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    throw Refusal("a number does not fit into 64 bits");
  }
  return Value::integer(value);
}

int hex_digits(std::string_view text, size_t at, int count, char32_t& code) {
  code = 0;
  for (int i = 0; i < count; ++i) {
    if (at + static_cast<size_t>(i) >= text.size() || digit_of(text[at + i]) > 15) {
      throw Refusal(fmt::format("truncated escape in a string: \\{}", text.substr(at - 1, 9)));
    }
    code = code * 16 + static_cast<char32_t>(digit_of(text[at + static_cast<size_t>(i)]));
  }
  return count;
}

// The escape whose letter is at `at`; returns where it ends.
size_t unescape(std::string_view text, size_t at, std::string& made) {
  const char c = text[at];
  static constexpr std::string_view kLetters = "abfnrtv\\'\"";
  static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  if (const size_t which = kLetters.find(c); which != std::string_view::npos) {
    made += kMeanings[which];
    return at + 1;
  }
  if (c == '\n') return at + 1;
  char32_t code = 0;
  if (c >= '0' && c <= '7') {
    size_t end = at;
    for (; end < text.size() && end < at + 3 && text[end] >= '0' && text[end] <= '7'; ++end) {
      code = code * 8 + static_cast<char32_t>(text[end] - '0');
    }
    append_code(made, code);
    return end;
  }
  if (c == 'N') throw Refusal("\\N{...} in a string is not supported");
  const int count = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (count == 0) {
    made += '\\';
    return at;
  }
  const size_t end = at + 1 + static_cast<size_t>(hex_digits(text, at + 1, count, code));
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    throw Refusal("an escape in a string is no character");
  }
  append_code(made, code);
  return end;
}

}  // namespace

size_t read_number(std::string_view text, bool behind_dot, Value& number) {
  if (const size_t end = behind_dot ? 0 : float_end(text); end > 0) {
    const std::string digits = without_underscores(text.substr(0, end));
    double value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (read.ec == std::errc::result_out_of_range) {
      value = digits.find("e-") != digits.npos || digits.find("E-") != digits.npos ? 0 : INFINITY;
    }
    number = Value::number(value);
    return end;
  }
  const char letter = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : '\0';
  const int base = text[0] != '0'  ? 10
                   : letter == 'x' ? 16
                   : letter == 'o' ? 8
                   : letter == 'b' ? 2
                                   : 1;
  if (base == 1) {
    number = Value::integer(0);
    return digits_end(text, 1, 1);
  }
  const size_t begin = base == 10 ? 0 : 2;
  const size_t end = base == 10 ? digits_end(text, 1, 10) : digits_end(text, 2, base);
  if (end <= begin) {  // 0x without digits: 0, and a name behind it
    number = Value::integer(0);
    return 1;
  }
  number = integer_at(text.substr(begin, end - begin), base);
  return end;
}

size_t name_size(std::string_view text) {
  size_t size = 0;
  for (const std::string_view character : Characters(text)) {
    const char32_t code = code_of(character);
    const bool letter = code == '_' || is_alphabetic(code);
    if (!letter && (size == 0 || !is_decimal(code))) break;
    size += character.size();
  }
  return size;
}

std::string unescaped(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      made += text[at++];
    } else {
      at = at + 1 < text.size() ? unescape(text, at + 1, made) : at + 1;
    }
  }
  return made;
}

}  // namespace skein::jinja
