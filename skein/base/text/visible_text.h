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

// All of `text` in the same way: a line for a terminal or a log that quotes names from outside.
std::string visible_line(std::string_view text);

// The same of each line of `text`, whose line feeds stay.
std::string visible_lines(std::string_view text);

// A running text for a terminal: line feeds, tabs and joiners stay; what moves the cursor, sets
// colours or turns the direction of writing is shown as above.
std::string terminal_text(std::string_view text);

// Whether all of `text` is UTF-8.
bool is_valid_utf8(std::string_view text);

// All of `text`, with bytes that are not UTF-8 as \xff: for names of files, where UTF-8 is wanted.
std::string escape_invalid_utf8(std::string_view text);

}  // namespace skein
