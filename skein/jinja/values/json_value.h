// JSON text as a value of a template, as Python's json.loads reads it: keys in their order, of two
// equal keys the last value, numbers as Python prints them, NaN and Infinity among them. Integers
// beyond 64 bits are kept as they are written.
//
// Errors   Error{kInvalid, "WHAT: not valid JSON: …"}; also for a lone surrogate (\ud83d), and
//          nesting deeper than 250 levels
#pragma once

#include <string>
#include <string_view>

#include "skein/jinja/values/value.h"

namespace skein::jinja {

// `what` names the text in errors: a file and a line. Halves of surrogate pairs that stand alone
// are U+FFFD.
Value json_value(std::string_view text, const std::string& what);

}  // namespace skein::jinja
