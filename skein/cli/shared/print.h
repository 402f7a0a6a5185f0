// Text for people, on a terminal: names and texts from outside are shown, and not obeyed. A file
// may be called "\x1b]0;title\a\nmade-up line".
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "skein/base/text/visible_text.h"

namespace skein {

// One line, with all that is in it on it.
template <typename... Args>
void print_line(std::FILE* file, fmt::format_string<Args...> format, Args&&... args) {
  fmt::print(file, "{}\n", visible_line(fmt::format(format, std::forward<Args>(args)...)));
}

// Several lines, whose names are on their lines already (visible_line).
inline void print_text(std::FILE* file, std::string_view text) {
  fmt::print(file, "{}", visible_lines(text));
}

}  // namespace skein
