// Numbers, names and strings as a template spells them.
//
// Errors   Refusal, without a place.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "skein/jinja/values/value.h"

namespace skein::jinja {

// The number at the beginning of `text`, a digit; returns its bytes. `behind_dot`: never a
// fraction.
size_t read_number(std::string_view text, bool behind_dot, Value& number);

// The bytes of the name that `text` begins with; 0 where it begins with none.
size_t name_size(std::string_view text);

// What a string spells, given what is between its quotes.
std::string unescaped(std::string_view text);

}  // namespace skein::jinja
