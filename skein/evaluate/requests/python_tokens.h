// Numbers and strings of Python's source, for python_literal.h.
//
// Errors   LiteralError, where Python raises SyntaxError or ValueError. Tokens that Python reads
//          and a value cannot hold are read too, and named in PythonToken::unsupported
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "skein/jinja/values/value.h"

namespace skein {

struct LiteralError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct PythonToken {
  size_t size = 0;  // bytes; 0: no such token begins there
  jinja::Value value;
  bool is_imaginary = false;  // a number: 2j
  bool is_bytes = false;      // a string: b''
  std::string unsupported;    // empty: `value` is the token's
};

// The number at the beginning of `text`, a digit or a point before a digit.
PythonToken python_number(std::string_view text, bool is_negative);
// The string at the beginning of `text`, with its prefix.
PythonToken python_string(std::string_view text);

}  // namespace skein
