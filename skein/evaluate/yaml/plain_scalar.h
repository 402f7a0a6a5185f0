// What a YAML scalar without quotes means, as PyYAML resolves it: YAML 1.1, with its own forms.
//
//   none      empty, ~, null, Null, NULL
//   bool      yes, no, true, false, on, off; in lower case, capitalized or in capitals
//   integer   decimal, 0b1, 0x1f, octal 017, base 60 (1:30); with a sign and underscores
//   float     with a point: 1.5, 1., .5, 1.5e+3, 1:30.5, .inf, .nan; 1e3, 1.5e3 and 0o17 are text
//   text      everything else; also a date (2024-01-31), which PyYAML makes a date
//
// Errors  jinja::Refusal: a date with a time, `=`, `<<`, 0b_ and 0x_; an integer beyond 64 bits
//         that is not decimal
// Source  PyYAML 6.0.4, resolver.py and constructor.py
#pragma once

#include <string_view>

#include "skein/jinja/values/value.h"

namespace skein {

jinja::Value plain_scalar(std::string_view text);

}  // namespace skein
