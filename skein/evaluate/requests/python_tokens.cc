#include "skein/evaluate/requests/python_tokens.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "skein/jinja/syntax/literals.h"

namespace skein {
namespace {

using jinja::Value;

constexpr size_t kMostDigits = 4300;

[[noreturn]] void refuse(const std::string& why) { throw LiteralError(why); }

bool is_digit(char c, int base = 10) {
  if (c >= '0' && c <= '9') return c - '0' < base;
  const char low = static_cast<char>(c | 0x20);
  return base == 16 && low >= 'a' && low <= 'f';
}

// digit ("_"? digit)* from `at` on; `at` if there is no digit.
size_t digits_end(std::string_view text, size_t at, int base = 10) {
  const auto digit = [&](size_t i) { return i < text.size() && is_digit(text[i], base); };
  if (!digit(at)) return at;
  while (digit(at) || (at < text.size() && text[at] == '_' && digit(at + 1))) ++at;
  return at;
}

std::string without_underscores(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c != '_') made += c;
  }
  return made;
}

// Where a fraction or a power ends; 0 if the number is whole.
size_t float_end(std::string_view text) {
  size_t end = digits_end(text, 0);
  const bool has_point = end < text.size() && text[end] == '.';
  if (has_point) end = digits_end(text, end + 1);
  if (end < text.size() && (text[end] | 0x20) == 'e') {
    size_t power = end + 1;
    if (power < text.size() && (text[power] == '+' || text[power] == '-')) ++power;
    if (const size_t power_end = digits_end(text, power); power_end > power) return power_end;
  }
  return has_point ? end : 0;
}

Value float_of(std::string_view text, bool is_negative) {
  const std::string digits = without_underscores(text);
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec == std::errc::result_out_of_range) {
    const size_t power = digits.find_first_of("eE");
    value = power != digits.npos && digits[power + 1] == '-' ? 0 : INFINITY;
  }
  return Value::number(is_negative ? -value : value);
}

Value integer_of(std::string_view text, int base, bool is_negative) {
  std::string digits = without_underscores(text);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  if (digits.size() > kMostDigits && base == 10)
    refuse(fmt::format("an integer of {} digits; at most {} are read", digits.size(), kMostDigits));
  if (is_negative) digits.insert(0, "-");
  int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (read.ec == std::errc()) return Value::integer(value);
  return base == 10 ? Value::big_integer(digits) : Value();
}

PythonToken based_number(std::string_view text, int base, bool is_negative) {
  const size_t begin = text.size() > 2 && text[2] == '_' ? 3 : 2;
  PythonToken token;
  token.size = digits_end(text, begin, base);
  if (token.size == begin) refuse("a number without digits");
  token.value = integer_of(text.substr(begin, token.size - begin), base, is_negative);
  if (token.value.is_undefined()) token.unsupported = "a number beyond 64 bits that is not decimal";
  return token;
}

// The escapes \x, \u and \U need 2, 4 and 8 digits, and give a code point.
void check_escapes(std::string_view body, bool is_bytes) {
  for (size_t at = 0; at + 1 < body.size(); ++at) {
    if (body[at] != '\\') continue;
    const char letter = body[++at];
    const size_t count = letter == 'x'   ? 2
                         : is_bytes      ? 0
                         : letter == 'u' ? 4
                         : letter == 'U' ? 8
                                         : 0;
    size_t end = at + 1;
    while (end < body.size() && end <= at + count && is_digit(body[end], 16)) ++end;
    uint32_t code = 0;
    if (count > 0 && end == at + 1 + count)
      std::from_chars(body.data() + at + 1, body.data() + end, code, 16);
    if ((count > 0 && end < at + 1 + count) || code > 0x10ffff)
      refuse(fmt::format("an escape \\{} that is no character", letter));
  }
}

// Sets the token's value from the text between the quotes.
void spell(std::string_view body, bool is_raw, PythonToken& token) {
  if (token.is_bytes) {
    token.unsupported = "bytes (b'')";
  } else if (is_raw) {
    token.value = Value::string(std::string(body));
    return;
  }
  check_escapes(body, token.is_bytes);
  try {
    if (!token.is_bytes) token.value = Value::string(jinja::unescaped(body));
  } catch (const jinja::Refusal& refusal) {
    token.unsupported = refusal.what();
  }
}

// The bytes of a prefix, with the quote's place behind it; text.size() if no string begins there.
size_t prefix_size(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && size < 2 &&
         std::string_view("rRuUbBfF").find(text[size]) != std::string_view::npos) {
    ++size;
  }
  const bool is_quoted = size < text.size() && (text[size] == '\'' || text[size] == '"');
  return is_quoted ? size : text.size();
}

bool has_letter(std::string_view prefix, char letter) {
  return prefix.find(letter) != prefix.npos ||
         prefix.find(static_cast<char>(letter - 32)) != prefix.npos;
}

}  // namespace

PythonToken python_number(std::string_view text, bool is_negative) {
  const char letter = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : '\0';
  const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  if (text[0] == '0' && base != 10) return based_number(text, base, is_negative);
  PythonToken token;
  token.size = float_end(text);
  const bool is_float = token.size > 0;
  if (!is_float) token.size = digits_end(text, 0);
  const std::string_view digits = text.substr(0, token.size);
  token.is_imaginary = token.size < text.size() && (text[token.size] | 0x20) == 'j';
  if (token.is_imaginary) {
    ++token.size;
    token.unsupported = "a complex number";
  } else if (is_float) {
    token.value = float_of(digits, is_negative);
  } else {
    if (digits[0] == '0' && digits.find_first_not_of("0_") != digits.npos)
      refuse("an integer that begins with 0");
    token.value = integer_of(digits, 10, is_negative);
  }
  return token;
}

PythonToken python_string(std::string_view text) {
  PythonToken token;
  const size_t begin = prefix_size(text);
  if (begin == text.size()) return token;
  const std::string_view prefix = text.substr(0, begin);
  const bool is_raw = has_letter(prefix, 'r');
  token.is_bytes = has_letter(prefix, 'b');
  if (has_letter(prefix, 'f')) refuse("a formatted string (f'')");
  if (prefix.size() == 2 && !(is_raw && token.is_bytes))
    refuse(fmt::format("the prefix {} of a string", prefix));
  const std::string three(3, text[begin]);
  const bool is_long = text.substr(begin, 3) == three;
  const std::string_view quote = text.substr(begin, is_long ? 3 : 1);
  const size_t body = begin + quote.size();
  for (size_t at = body; at < text.size(); ++at) {
    if (text.substr(at, quote.size()) == quote) {
      spell(text.substr(body, at - body), is_raw, token);
      token.size = at + quote.size();
      return token;
    }
    if (text[at] == '\n' && !is_long) break;
    if (text[at] == '\\') ++at;
  }
  refuse("a string without its closing quote");
}

}  // namespace skein
