// A literal of Python as a value, as ast.literal_eval reads it: lm-evaluation-harness reads answers
// and choices this way from the text that a template gives.
//
//   python_literal("['a', \"it's\", -1.5, None]", "doc_to_choice")   // a list of four
//
// Forms    strings ('', "", three quotes, r, u, escapes, several side by side), integers (0x, 0o,
//          0b, _), floats, True, False, None, lists, tuples (also `1, 2`), dicts, parentheses,
//          comments, + and - before a number
// Limits   200 brackets inside each other, as in CPython; integers of 4,300 digits
// Errors   kInvalid, "WHAT: character N: ...", where Python raises SyntaxError or ValueError.
//          kUnsupported for the literals that Python reads and a value cannot hold: bytes, sets,
//          complex numbers, `...`, \N{NAME}, half a surrogate pair, hexadecimal numbers beyond 64
//          bits, a key that cannot be a key
// Source   CPython 3.11, Lib/ast.py; The Python Language Reference, chapter 2
#pragma once

#include <string>
#include <string_view>

#include "skein/jinja/values/value.h"

namespace skein {

// `what` names the text in errors.
jinja::Value python_literal(std::string_view text, const std::string& what);

}  // namespace skein
