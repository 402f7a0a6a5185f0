// Pages of HTML among the documents, which are text to everybody else here: with their tags,
// scripts and menus.
#pragma once

#include <string_view>

namespace skein {

// Whether `text` begins as a page does, <!doctype html> or <html, behind space, a byte order mark,
// <?xml …?> and comments.
// Cost   a look at the first byte that is no space, for text that does not begin with '<'
bool is_html(std::string_view text);

}  // namespace skein
