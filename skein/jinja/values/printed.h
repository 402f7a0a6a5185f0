// Values as text: str(), repr() and json.dumps() of Python.
//
// Errors   Refusal where Python has no such text (a generator has no JSON), or the budget does not
//          last.
#pragma once

#include <string>

#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

// str(value): what {{ value }} prints. Undefined is nothing.
std::string printed(const Value& value, Budget& budget);

// repr(value).
std::string represented(const Value& value, Budget& budget);

std::string printed_float(double value);  // "1.0", "1e+16", "nan"

struct JsonForm {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool has_indent = false;
  std::string indent;  // of a level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
std::string json_text(const Value& value, const JsonForm& form, Budget& budget);

}  // namespace skein::jinja
