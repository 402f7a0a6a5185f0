// What operators of a template do, as in Python: numbers, text, lists and dicts.
//
// Errors   Refusal with Python's words ("can only concatenate str …"); of an undefined operand, why
//          it is undefined. Integers beyond 64 bits are refused.
#pragma once

#include <string>

#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

// Throws Refusal("'name' is undefined") where `value` is undefined.
void need_defined(const Value& value);

Value binary(Operator op, const Value& a, const Value& b, Budget& budget);
Value negative(const Value& value);
Value positive(const Value& value);

bool compare(Operator op, const Value& a, const Value& b, Budget& budget);
bool less(const Value& a, const Value& b);
bool contains(const Value& container, const Value& item, Budget& budget);

// A value as an index, a count or a width: an integer or a bool. `what` names it in the error.
int64_t integer_of(const Value& value, const char* what);

// value[key], or undefined.
Value item_of(const Value& value, const Value& key, Budget& budget);
// value[start:stop:step]; a bound may be undefined or none.
Value slice_of(const Value& value, const Value& start, const Value& stop, const Value& step,
               Budget& budget);

// printf-style formatting, of str % values: template_text is the format.
std::string percent_formatted(std::string_view format, const Value& values, Budget& budget);

// The text with &, <, >, ' and " as entities.
std::string html_escaped(std::string_view text);

}  // namespace skein::jinja
