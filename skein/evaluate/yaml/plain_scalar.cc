#include "skein/evaluate/yaml/plain_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace skein {
namespace {

using jinja::Refusal;
using jinja::Value;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads a scalar from its beginning; every method that is not true leaves the place as it was.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool at_end() const { return at_ == text_.size(); }

  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  template <typename Accepts>
  bool take_one(const Accepts& accepts) {
    if (at_end() || !accepts(text_[at_])) return false;
    ++at_;
    return true;
  }
  template <typename Accepts>
  int take_all(const Accepts& accepts) {
    int count = 0;
    while (take_one(accepts)) ++count;
    return count;
  }
  void take_sign() {
    take_one([](char c) { return c == '+' || c == '-'; });
  }
  // One digit or two, the first of two at most 5.
  bool take_sexagesimal() {
    const size_t before = at_;
    if (!take(":") || !take_one(is_digit)) return at_ = before, false;
    if (text_[at_ - 1] <= '5') take_one(is_digit);
    return true;
  }
  int take_sexagesimals() {
    int count = 0;
    while (take_sexagesimal()) ++count;
    return count;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

bool is_digit_or_underscore(char c) { return is_digit(c) || c == '_'; }

// [eE][-+][0-9]+ or nothing, then the end.
bool ends_as_float(Reader reader) {
  if (reader.at_end()) return true;
  return (reader.take("e") || reader.take("E")) && (reader.take("+") || reader.take("-")) &&
         reader.take_all(is_digit) > 0 && reader.at_end();
}

bool is_float(std::string_view text) {
  Reader reader(text);
  if (reader.take(".")) {
    Reader word = reader;
    for (const char* name : {"inf", "Inf", "INF", "nan", "NaN", "NAN"}) {
      if (word.take(name)) return word.at_end();
    }
    if (!reader.take_one(is_digit)) return false;
    reader.take_all(is_digit_or_underscore);
    return ends_as_float(reader);
  }
  reader.take_sign();
  if (reader.take(".")) {
    return (reader.take("inf") || reader.take("Inf") || reader.take("INF")) && reader.at_end();
  }
  if (!reader.take_one(is_digit)) return false;
  reader.take_all(is_digit_or_underscore);
  const bool sexagesimal = reader.take_sexagesimals() > 0;
  if (!reader.take(".")) return false;
  reader.take_all(is_digit_or_underscore);
  return sexagesimal ? reader.at_end() : ends_as_float(reader);
}

bool is_integer(std::string_view text) {
  Reader reader(text);
  reader.take_sign();
  if (reader.take("0")) {
    if (reader.at_end()) return true;
    const auto digits = [&](int base) {
      return [base](char c) {
        if (c == '_') return true;
        if (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return true;
        return is_digit(c) && c - '0' < base;
      };
    };
    const int base = reader.take("b") ? 2 : reader.take("x") ? 16 : 8;
    return reader.take_all(digits(base)) > 0 && reader.at_end();
  }
  if (!reader.take_one(is_digit)) return false;
  reader.take_all(is_digit_or_underscore);
  reader.take_sexagesimals();
  return reader.at_end();
}

// 2024-01-31: `has_time` where more follows.
bool is_timestamp(std::string_view text, bool& has_time) {
  has_time = false;
  const auto digits = [](Reader& reader, int fewest, int most) {
    int count = 0;
    while (count < most && reader.take_one(is_digit)) ++count;
    return count >= fewest;
  };
  Reader reader(text);
  if (Reader date = reader; digits(date, 4, 4) && date.take("-") && digits(date, 2, 2) &&
                            date.take("-") && digits(date, 2, 2) && date.at_end()) {
    return true;
  }
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  has_time = true;
  if (!digits(reader, 4, 4) || !reader.take("-") || !digits(reader, 1, 2) || !reader.take("-") ||
      !digits(reader, 1, 2))
    return false;
  if (!reader.take("T") && !reader.take("t") && reader.take_all(blank) == 0) return false;
  if (!digits(reader, 1, 2) || !reader.take(":") || !digits(reader, 2, 2) || !reader.take(":") ||
      !digits(reader, 2, 2))
    return false;
  if (reader.take(".")) reader.take_all(is_digit);
  reader.take_all(blank);
  if (reader.take("Z") || reader.at_end()) return reader.at_end();
  if (!reader.take("+") && !reader.take("-")) return false;
  if (!digits(reader, 1, 2)) return false;
  return reader.at_end() || (reader.take(":") && digits(reader, 2, 2) && reader.at_end());
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

double float_of(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  // Beyond a double, Python has infinity or zero.
  if (error == std::errc::result_out_of_range) return std::strtod(std::string(digits).c_str(), {});
  return value;
}

Value float_value(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const double sign = text.starts_with('-') ? -1 : 1;
  const std::string_view digits =
      std::string_view(text).substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  if (digits == ".inf") return Value::number(sign * std::numeric_limits<double>::infinity());
  if (digits == ".nan") return Value::number(std::numeric_limits<double>::quiet_NaN());
  const auto parts = parts_of(digits);
  if (parts.size() == 1) return Value::number(sign * float_of(digits));
  double value = 0, base = 1;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    value += float_of(*part) * base;
    base *= 60;
  }
  return Value::number(sign * value);
}

[[noreturn]] void refuse_integer(std::string_view text) {
  throw Refusal(
      fmt::format("the integer {} is beyond 64 bits: write it in decimal digits, or in quotes",
                  std::string(text.substr(0, 40))));
}

Value integer_value(const std::string& text) {
  const bool is_negative = text.starts_with('-');
  std::string_view digits = text;
  if (is_negative || text.starts_with('+')) digits.remove_prefix(1);
  const auto parts = parts_of(digits);
  int base = 10;
  if (digits.size() > 1 && digits.starts_with('0')) {
    base = digits[1] == 'b' ? 2 : digits[1] == 'x' ? 16 : 8;
    digits.remove_prefix(base == 8 ? 1 : 2);
    if (digits.empty())
      throw Refusal(fmt::format("{} has no digits: write it in quotes if it is text", text));
  }
  uint64_t value = 0;
  bool fits = true;
  if (parts.size() > 1) {
    for (const std::string_view part : parts) {
      uint64_t digit = 0;
      fits &= std::from_chars(part.data(), part.data() + part.size(), digit).ec == std::errc();
      fits &= !__builtin_mul_overflow(value, 60, &value);
      fits &= !__builtin_add_overflow(value, digit, &value);
    }
  } else {
    fits = std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ec ==
           std::errc();
  }
  const uint64_t most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (fits && value <= most) {
    return Value::integer(is_negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value));
  }
  if (fits && is_negative && value == most + 1) {
    return Value::integer(std::numeric_limits<int64_t>::min());
  }
  if (base != 10 || parts.size() > 1) refuse_integer(text);
  return Value::big_integer((is_negative ? "-" : "") + std::string(digits));
}

std::optional<Value> word_value(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return Value::none();
  constexpr std::array kTrue = {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
  constexpr std::array kFalse = {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
  const auto is_text = [&](const char* word) { return text == word; };
  if (std::any_of(kTrue.begin(), kTrue.end(), is_text)) return Value::boolean(true);
  if (std::any_of(kFalse.begin(), kFalse.end(), is_text)) return Value::boolean(false);
  return std::nullopt;
}

}  // namespace

Value plain_scalar(std::string_view text) {
  if (auto word = word_value(text)) return *word;
  if (text == "=" || text == "<<")
    throw Refusal(fmt::format("{} has a meaning of its own in YAML: write it in quotes", text));
  const char first = text.front();
  if (is_digit(first) || first == '+' || first == '-' || first == '.') {
    std::string plain(text);
    std::erase(plain, '_');
    if (is_float(text)) return float_value(std::move(plain));
    if (is_integer(text)) return integer_value(plain);
    if (bool has_time = false; is_timestamp(text, has_time) && has_time)
      throw Refusal(fmt::format(
          "{} is a date with a time, which is not supported: write it in quotes", text));
  }
  return Value::string(std::string(text));
}

}  // namespace skein
