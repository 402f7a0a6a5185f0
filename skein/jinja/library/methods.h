// Methods of values: those of Python's str, dict and list that read. What changes a value is
// refused, as in jinja2's immutable sandbox.
//
//   str    capitalize center count endswith find index isalnum isalpha isascii isdecimal isdigit
//          islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip partition
//          removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split
//          splitlines startswith strip swapcase title upper zfill
//   dict   copy get items keys values
//   list, tuple   copy count index
//   loop   changed cycle
//
// Errors   Refusal; "is not supported" for other methods that Python has
#pragma once

#include <string_view>

#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

// Whether Python finds an attribute `name` there that is a method.
bool has_method(const Value& value, std::string_view name);

Value call_method(const Value& value, std::string_view name, const Arguments& arguments,
                  Budget& budget);

// The method as a value, to be called later; `budget` must live as long.
Value method_of(const Value& value, std::string_view name, Budget& budget);

// Methods of a string, in methods_text.cc; false where `name` is none of them.
bool call_text_method(const Value& text, std::string_view name, const Arguments& arguments,
                      Budget& budget, Value& result);

}  // namespace skein::jinja
