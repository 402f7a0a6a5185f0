#include "skein/base/text/python_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace skein {
namespace {

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

// The characters that a number is made of, and the letters of the words.
bool is_in_token(char byte) {
  return is_digit(byte) || byte == '-' || byte == '+' || byte == '.' ||
         (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

struct Number {
  bool is_valid = false, is_whole = true;
  bool is_long = false;  // more digits, or more of an exponent, than a double surely holds
};

// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
Number number_in(std::string_view token) {
  constexpr size_t kSureDigits = 300, kSureExponent = 2;
  Number number;
  const auto digits = [&token] {
    size_t count = 0;
    while (count < token.size() && is_digit(token[count])) ++count;
    token.remove_prefix(count);
    return count;
  };
  if (token.starts_with('-')) token.remove_prefix(1);
  const bool is_zero = token.starts_with('0');
  const size_t before = digits();
  if (before == 0 || (is_zero && before > 1)) return number;
  number.is_long = before > kSureDigits;
  if (token.starts_with('.')) {
    token.remove_prefix(1);
    number.is_whole = false;
    if (digits() == 0) return number;
  }
  if (token.starts_with('e') || token.starts_with('E')) {
    token.remove_prefix(1);
    number.is_whole = false;
    if (token.starts_with('+') || token.starts_with('-')) token.remove_prefix(1);
    const size_t exponent = digits();
    if (exponent == 0) return number;
    number.is_long |= exponent > kSureExponent || before > kSureDigits / 2;
  }
  number.is_valid = token.empty();
  return number;
}

class Plain {
 public:
  Plain(std::string_view text, bool mends) : mends_(mends) { plain_.text = text; }

  PlainJson read() {
    std::string& text = plain_.text;
    for (size_t at = 0; at < text.size();) {
      if (text[at] == '"') {
        at = skip_string(at + 1);
      } else if (is_in_token(text[at])) {
        size_t end = at;
        while (end < text.size() && is_in_token(text[end])) ++end;
        take_token(at, end);
        at = end;
      } else {
        ++at;
      }
    }
    return std::move(plain_);
  }

 private:
  void put(size_t begin, size_t end, std::string_view number) {
    std::fill(plain_.text.begin() + static_cast<std::ptrdiff_t>(begin),
              plain_.text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    plain_.text.replace(begin, number.size(), number);
  }

  void take_token(size_t begin, size_t end) {
    const std::string token = plain_.text.substr(begin, end - begin);
    if (token == "NaN") return put(begin, end, kPlainNan);
    if (token == "Infinity") return put(begin, end, kPlainInfinity);
    if (token == "-Infinity") return put(begin, end, kPlainMinusInfinity);
    const Number number = number_in(token);
    if (!number.is_valid) return;
    if (token.find('E') != token.npos) {  // which the above are written with
      plain_.text[begin + token.find('E')] = 'e';
    }
    if (!number.is_long) return;
    const double value = std::strtod(token.c_str(), nullptr);
    if (!std::isinf(value)) return;
    if (number.is_whole) {
      plain_.integers.push_back(token);
      return put(begin, end, kPlainInteger);
    }
    put(begin, end, value > 0 ? kPlainInfinity : kPlainMinusInfinity);
  }

  // Returns what is behind the string that begins before `at`.
  size_t skip_string(size_t at) {
    const std::string& text = plain_.text;
    while (at < text.size() && text[at] != '"') {
      at = text[at] == '\\' ? skip_escape(at) : at + 1;
    }
    return at + 1;
  }

  size_t skip_escape(size_t at) {
    const int32_t code = code_at(at);
    if (code < 0xd800 || code > 0xdfff) return at + 2;
    const int32_t next = code_at(at + 6);
    if (code < 0xdc00 && next >= 0xdc00 && next <= 0xdfff) return at + 12;
    if (mends_) plain_.text.replace(at + 2, 4, "fffd");
    plain_.is_mended |= mends_;
    return at + 6;
  }

  // What \uXXXX at `at` stands for; -1: it is none.
  int32_t code_at(size_t at) const {
    const std::string& text = plain_.text;
    if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
    const std::string digits = text.substr(at + 2, 4);
    if (digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) return -1;
    return static_cast<int32_t>(std::strtol(digits.c_str(), nullptr, 16));
  }

  PlainJson plain_;
  const bool mends_;
};

}  // namespace

PlainJson plain_json(std::string_view text, bool mends) { return Plain(text, mends).read(); }

bool has_lone_surrogate(std::string_view text) {
  return text.find("\\u") != text.npos && plain_json(text, true).is_mended;
}

}  // namespace skein
