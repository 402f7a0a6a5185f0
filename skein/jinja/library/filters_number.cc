#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "skein/jinja/library/filter_table.h"
#include "skein/jinja/library/functions.h"
#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/printed.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

// Digits with single underscores between them, as int() and float() take them; false where there
// are others.
bool take_underscores(std::string_view text, std::string& made) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      made += text[i];
      continue;
    }
    const auto digit = [&](size_t at) {
      return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    };
    if (i == 0 || !digit(i - 1) || !digit(i + 1)) return false;
  }
  return true;
}

// int(text, base) of Python; nothing where that is an error.
std::optional<Value> integer_from(std::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  text = strip(text, Side::kBoth, nullptr);
  bool minus = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    minus = text[0] == '-';
    text.remove_prefix(1);
  }
  int radix = static_cast<int>(base);
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const int of_prefix = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (of_prefix != 0 && (base == 0 || base == of_prefix)) {
      radix = of_prefix;
      text.remove_prefix(text[2] == '_' ? 3 : 2);
    }
  }
  if (radix == 0) radix = 10;
  std::string digits = minus ? "-" : "";
  if (text.empty() || text[0] == '-' || text[0] == '+' || !take_underscores(text, digits)) {
    return std::nullopt;
  }
  int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, radix);
  if (read.ec == std::errc::result_out_of_range) throw Refusal("int: a number beyond 64 bits");
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return Value::integer(value);
}

// float(text) of Python.
std::optional<double> float_from(std::string_view text) {
  text = strip(text, Side::kBoth, nullptr);
  std::string digits;
  if (text.empty() || !take_underscores(text, digits)) return std::nullopt;
  const std::string low = lower(digits);
  const bool is_signed = low[0] == '-' || low[0] == '+';
  const std::string_view word = std::string_view(low).substr(is_signed ? 1 : 0);
  if (word == "inf" || word == "infinity") return low[0] == '-' ? -INFINITY : INFINITY;
  if (word == "nan") return std::nan("");
  if (word.empty() || !(word[0] == '.' || (word[0] >= '0' && word[0] <= '9'))) return std::nullopt;
  double value = 0;
  const char* const begin = low.data() + (low[0] == '+' ? 1 : 0);
  const auto read = std::from_chars(begin, low.data() + low.size(), value);
  if (read.ptr != low.data() + low.size()) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) {
    const bool small = low.find("e-") != std::string::npos;
    value = small ? 0 : INFINITY;
    if (low[0] == '-') value = -value;
  } else if (read.ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

std::optional<Value> truncated(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (std::abs(number) >= 9.2e18) throw Refusal("int: a number beyond 64 bits");
  return Value::integer(static_cast<int64_t>(number));
}

// round(value, digits) of Python: half to even, of the number's exact value.
double rounded(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits < -308) return 0.0 * value;
  if (digits >= 0) {
    const std::string text = fmt::format("{:.{}f}", value, static_cast<int>(digits));
    double made = 0;
    std::from_chars(text.data(), text.data() + text.size(), made);
    return made;
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

int64_t rounded_integer(int64_t value, int64_t digits) {
  if (digits < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i > digits; --i) unit *= 10;
  int64_t rest = value % unit;
  if (rest < 0) rest += unit;
  const int64_t down = value - rest;
  const bool odd = (down / unit) % 2 != 0;
  return rest * 2 > unit || (rest * 2 == unit && odd) ? down + unit : down;
}

}  // namespace

Value filter_abs(const Value& value, const Arguments& given, Budget&) {
  const Bound bound("abs", given, {});
  need_defined(value);
  if (value.is_integer()) {
    return value.as_integer() < 0 ? negative(value) : Value::integer(value.as_integer());
  }
  if (value.is(Kind::kFloat)) return Value::number(std::abs(value.as_float()));
  throw Refusal(fmt::format("bad operand type for abs(): '{}'", type_name(value)));
}

Value filter_default(const Value& value, const Arguments& given, Budget&) {
  const Bound bound("default", given, {"default_value", "boolean"});
  if (value.is_undefined() || (bound.truth(1, false) && !is_true(value))) {
    return bound.value(0, Value::string(""));
  }
  return value;
}

Value filter_int(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("int", given, {"default", "base"});
  need_defined(value);
  if (value.is_integer()) return Value::integer(value.as_integer());
  if (value.is(Kind::kBigInteger)) return value;
  std::optional<Value> made;
  if (value.is(Kind::kFloat)) {
    made = truncated(value.as_float());
    if (!made && std::isinf(value.as_float())) {
      throw Refusal("cannot convert float infinity to integer");
    }
  } else if (value.is_string()) {
    budget.pass_over(static_cast<int64_t>(value.text().size()));
    made = integer_from(value.text(), bound.integer(1, 10));
    if (!made) {
      const std::optional<double> number = float_from(value.text());
      if (number) made = truncated(*number);
    }
  }
  return made ? *made : bound.value(0, Value::integer(0));
}

Value filter_float(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("float", given, {"default"});
  need_defined(value);
  if (value.is_number()) return Value::number(value.as_float());
  if (value.is_string()) {
    budget.pass_over(static_cast<int64_t>(value.text().size()));
    if (const std::optional<double> number = float_from(value.text()))
      return Value::number(*number);
  }
  return bound.value(0, Value::number(0.0));
}

Value filter_round(const Value& value, const Arguments& given, Budget&) {
  const Bound bound("round", given, {"precision", "method"});
  const int64_t digits = bound.integer(0, 0);
  const std::string method = bound.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") {
    throw Refusal("round: method must be common, ceil or floor");
  }
  need_defined(value);
  if (!value.is_number()) {
    throw Refusal(fmt::format("type {} doesn't define __round__ method", type_name(value)));
  }
  if (method == "common") {
    if (value.is_integer()) {
      return Value::integer(digits >= 0 ? value.as_integer()
                                        : rounded_integer(value.as_integer(), digits));
    }
    return Value::number(rounded(value.as_float(), digits));
  }
  if (digits < -300 || digits > 300) throw Refusal("round: a precision so large");
  const double unit = std::pow(10.0, static_cast<double>(digits));
  const double scaled = value.as_float() * unit;
  const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return Value::number(whole / unit + 0.0);  // an integer in between: -0 is 0
}

Value filter_sum(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("sum", given, {"attribute", "start"});
  Value total = bound.value(1, Value::integer(0));
  if (total.is_string()) throw Refusal("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : items_of(value, budget)) {
    total = binary(Operator::kAdd, total, bound.has(0) ? value_at(item, *bound[0], budget) : item,
                   budget);
  }
  return total;
}

}  // namespace skein::jinja
