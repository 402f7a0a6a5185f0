// Filters (value | name) and tests (value is name), by name, as jinja2 has them.
//
//   abs attr batch capitalize center count d default dictsort e escape first float forceescape
//   format indent int items join last length list lower map max min reject rejectattr replace
//   reverse round safe select selectattr slice sort string sum title tojson trim unique upper
//   wordcount
//
//   boolean callable defined divisibleby eq equalto == escaped even false filter float ge >=
//   greaterthan gt > in integer iterable le <= lessthan lt < lower mapping ne != none number odd
//   sameas sequence string test true undefined upper
//
// A program may add filters: Syntax::filters.
//
// tojson is transformers': nothing is escaped for HTML, and ensure_ascii is off. An iterator (of
// batch, items, map, select, unique, reverse of a list, …) is made at once: an error in it comes
// where it is made.
//
// Errors   Refusal
#pragma once

#include <string>
#include <string_view>

#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

// Empty where there is such a filter or test, else what a person should read.
std::string why_no_filter(std::string_view name);
std::string why_no_test(std::string_view name);

Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments,
                   Budget& budget);
bool passes_test(std::string_view name, const Value& value, const Arguments& arguments,
                 Budget& budget);

}  // namespace skein::jinja
