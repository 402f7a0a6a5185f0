// Text of unknown origin, made safe and plain to look at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skein {

// The first `max_characters` of `text` on one line: control characters and what else has no picture
// or turns the direction of writing as \n, \x1b or \u202e, bytes that are not UTF-8 as \xff, and …
// behind them where there is more.
std::string visible_text(std::string_view text, int64_t max_characters);

// All of `text`, with bytes that are not UTF-8 as \xff: for names of files, where UTF-8 is wanted.
std::string escape_invalid_utf8(std::string_view text);

}  // namespace skein
