#include "skein/jinja/values/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "skein/jinja/values/printed.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

constexpr const char* kSymbols[] = {
    "+", "-", "*", "/", "//", "%", "** or pow()", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

[[noreturn]] void refuse_operands(Operator op, const Value& a, const Value& b) {
  throw Refusal(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'",
                            kSymbols[static_cast<int>(op)], type_name(a), type_name(b)));
}

[[noreturn]] void refuse_size() { throw Refusal("an integer does not fit into 64 bits"); }

void refuse_big(const Value& value) {
  if (value.is(Kind::kBigInteger)) refuse_size();
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) throw Refusal("integer division or modulo by zero");
  if (a == std::numeric_limits<int64_t>::min() && b == -1) refuse_size();
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  // Beyond 64 squarings only 0, 1 and -1 stay within 64 bits.
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) refuse_size();
  }
  return result;
}

double float_modulo(double a, double b) {
  if (b == 0) throw Refusal("float modulo");
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (rest == 0) rest = std::copysign(0.0, b);
  return rest;
}

double float_floor_divide(double a, double b) {
  if (b == 0) throw Refusal("float floor division by zero");
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) throw Refusal("0.0 cannot be raised to a negative power");
  if (a < 0 && b != std::floor(b)) throw Refusal("a power of a negative number is complex");
  const double result = std::pow(a, b);
  if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) {
    throw Refusal("(34, 'Numerical result out of range')");
  }
  return result;
}

Value integer_arithmetic(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      if (__builtin_add_overflow(a, b, &result)) refuse_size();
      return Value::integer(result);
    case Operator::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) refuse_size();
      return Value::integer(result);
    case Operator::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) refuse_size();
      return Value::integer(result);
    case Operator::kDivide:
      if (b == 0) throw Refusal("division by zero");
      // Rounded once, as Python does.
      return Value::number(static_cast<double>(static_cast<long double>(a) / b));
    case Operator::kFloorDivide:
      return Value::integer(floor_divide(a, b));
    case Operator::kModulo:
      return Value::integer(a - (b == -1 ? a : floor_divide(a, b) * b));
    default:
      if (b < 0) return Value::number(float_power(static_cast<double>(a), static_cast<double>(b)));
      return Value::integer(integer_power(a, b));
  }
}

Value float_arithmetic(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return Value::number(a + b);
    case Operator::kSubtract:
      return Value::number(a - b);
    case Operator::kMultiply:
      return Value::number(a * b);
    case Operator::kDivide:
      if (b == 0) throw Refusal("float division by zero");
      return Value::number(a / b);
    case Operator::kFloorDivide:
      return Value::number(float_floor_divide(a, b));
    case Operator::kModulo:
      return Value::number(float_modulo(a, b));
    default:
      return Value::number(float_power(a, b));
  }
}

bool is_list_or_tuple(const Value& value) {
  return value.is(Kind::kSequence) && value.as_sequence().flavor <= Flavor::kTuple;
}

Value add(const Value& a, const Value& b, Budget& budget) {
  if (a.is_string() && b.is_string()) {
    const bool markup = a.as_string().is_markup || b.as_string().is_markup;
    const auto part = [&](const Value& value) {
      return markup && !value.as_string().is_markup ? html_escaped(value.text()) : value.text();
    };
    budget.make(static_cast<int64_t>(a.text().size() + b.text().size()));
    return Value::string(part(a) + part(b), markup);
  }
  if (is_list_or_tuple(a) && is_list_or_tuple(b) &&
      a.as_sequence().flavor == b.as_sequence().flavor) {
    std::vector<Value> items = items_of(a, budget);
    const std::vector<Value> more = items_of(b, budget);
    items.insert(items.end(), more.begin(), more.end());
    return Value::list(std::move(items), a.as_sequence().flavor);
  }
  if (a.is_string()) {
    throw Refusal(fmt::format("can only concatenate str (not \"{}\") to str", type_name(b)));
  }
  if (is_list_or_tuple(a)) {
    throw Refusal(fmt::format("can only concatenate {} (not \"{}\") to {}", type_name(a),
                              type_name(b), type_name(a)));
  }
  refuse_operands(Operator::kAdd, a, b);
}

Value repeat(const Value& value, int64_t times, Budget& budget) {
  times = std::max<int64_t>(times, 0);
  const int64_t size = value.is_string()
                           ? static_cast<int64_t>(value.text().size())
                           : static_cast<int64_t>(value.as_sequence().items.size() * sizeof(Value));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(size, times, &bytes)) bytes = std::numeric_limits<int64_t>::max();
  budget.make(bytes);
  if (size == 0) times = 0;
  if (value.is_string()) {
    std::string made;
    made.reserve(static_cast<size_t>(bytes));
    for (int64_t i = 0; i < times; ++i) made += value.text();
    return Value::string(std::move(made), value.as_string().is_markup);
  }
  std::vector<Value> items;
  const auto& once = value.as_sequence().items;
  for (int64_t i = 0; i < times; ++i) items.insert(items.end(), once.begin(), once.end());
  return Value::list(std::move(items), value.as_sequence().flavor);
}

// -1, 0, 1; 2 where a NaN is among them.
int order(const Value& a, const Value& b, Operator op) {
  if (a.is_number() && b.is_number()) {
    const auto exact = [](const Value& value) {
      return value.is_integer() ? static_cast<long double>(value.as_integer())
                                : static_cast<long double>(value.as_float());
    };
    const long double x = exact(a);
    const long double y = exact(b);
    return std::isnan(x) || std::isnan(y) ? 2 : x < y ? -1 : x > y ? 1 : 0;
  }
  if (a.is_string() && b.is_string()) {
    const int sign = a.text().compare(b.text());
    return sign < 0 ? -1 : sign > 0 ? 1 : 0;
  }
  if (is_list_or_tuple(a) && is_list_or_tuple(b) &&
      a.as_sequence().flavor == b.as_sequence().flavor) {
    const auto& x = a.as_sequence().items;
    const auto& y = b.as_sequence().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i])) return order(x[i], y[i], op);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  need_defined(a);
  need_defined(b);
  throw Refusal(fmt::format("'{}' not supported between instances of '{}' and '{}'",
                            kSymbols[static_cast<int>(op)], type_name(a), type_name(b)));
}

}  // namespace

void need_defined(const Value& value) {
  if (!value.is_undefined()) return;
  throw Refusal(value.text().empty() ? "the value is undefined" : value.text());
}

int64_t integer_of(const Value& value, const char* what) {
  need_defined(value);
  if (!value.is_integer()) {
    throw Refusal(fmt::format("{}: expected an integer, found '{}'", what, type_name(value)));
  }
  return value.as_integer();
}

Value binary(Operator op, const Value& a, const Value& b, Budget& budget) {
  if (op == Operator::kModulo && a.is_string()) {
    if (a.as_string().is_markup) throw Refusal("% of text that was escaped is not supported");
    return Value::string(percent_formatted(a.text(), b, budget));
  }
  need_defined(a);
  need_defined(b);
  refuse_big(a);
  refuse_big(b);
  if (a.is_integer() && b.is_integer()) {
    return integer_arithmetic(op, a.as_integer(), b.as_integer());
  }
  if (a.is_number() && b.is_number()) return float_arithmetic(op, a.as_float(), b.as_float());
  if (op == Operator::kAdd) return add(a, b, budget);
  if (op == Operator::kMultiply) {
    if ((a.is_string() || is_list_or_tuple(a)) && b.is_integer()) {
      return repeat(a, b.as_integer(), budget);
    }
    if ((b.is_string() || is_list_or_tuple(b)) && a.is_integer()) {
      return repeat(b, a.as_integer(), budget);
    }
    if (a.is_string() || is_list_or_tuple(a)) {
      throw Refusal(fmt::format("can't multiply sequence by non-int of type '{}'", type_name(b)));
    }
  }
  refuse_operands(op, a, b);
}

Value negative(const Value& value) {
  need_defined(value);
  refuse_big(value);
  if (value.is_integer()) return integer_arithmetic(Operator::kSubtract, 0, value.as_integer());
  if (value.is(Kind::kFloat)) return Value::number(-value.as_float());
  throw Refusal(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
}

Value positive(const Value& value) {
  need_defined(value);
  if (value.is_integer()) return Value::integer(value.as_integer());
  if (value.is(Kind::kFloat) || value.is(Kind::kBigInteger)) return value;
  throw Refusal(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
}

bool less(const Value& a, const Value& b) { return order(a, b, Operator::kLess) == -1; }

bool compare(Operator op, const Value& a, const Value& b, Budget& budget) {
  budget.step();
  switch (op) {
    case Operator::kEqual:
      return equal(a, b);
    case Operator::kNotEqual:
      return !equal(a, b);
    case Operator::kIn:
      return contains(b, a, budget);
    case Operator::kNotIn:
      return !contains(b, a, budget);
    default:
      break;
  }
  refuse_big(a);
  refuse_big(b);
  const int sign = order(a, b, op);
  if (sign == 2) return false;
  if (op == Operator::kLess) return sign < 0;
  if (op == Operator::kLessEqual) return sign <= 0;
  return op == Operator::kGreater ? sign > 0 : sign >= 0;
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  if (container.is_string()) {
    if (!item.is_string()) {
      need_defined(item);
      throw Refusal(
          fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    }
    budget.pass_over(static_cast<int64_t>(container.text().size()));
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.is(Kind::kDict)) return container.as_dict().find(item) != nullptr;
  if (container.is(Kind::kIterator)) {
    Iterator& iterator = container.as_iterator();
    while (iterator.next < iterator.items.size()) {
      budget.step();
      if (equal(iterator.items[iterator.next++], item)) return true;
    }
    return false;
  }
  refuse_strict(container);
  if (container.is_undefined()) return false;
  if (!container.is(Kind::kSequence)) {
    throw Refusal(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  }
  for (const Value& other : container.as_sequence().items) {
    budget.step();
    if (equal(other, item)) return true;
  }
  return false;
}

std::string html_escaped(std::string_view text) {
  std::string made;
  for (const char byte : text) {
    switch (byte) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '\'':
        made += "&#39;";
        break;
      case '"':
        made += "&#34;";
        break;
      default:
        made += byte;
    }
  }
  return made;
}

}  // namespace skein::jinja
