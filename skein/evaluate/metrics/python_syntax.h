// Expressions of Python's `re` in PCRE2's syntax.
//
// An expression is parsed as CPython 3.11's re/_parser.py parses it, and written again so that no
// option of PCRE2 but UTF changes what it matches: classes, anchors and flags are spelled out.
//
//   \d \w \s   Unicode's Nd; L, N and _; str.isspace. (?a): those of ASCII
//   ^ $ \Z     start; end, or before a newline at the end; end. (?m): lines end at \n alone
//   (?i)       Python's cases: i, I, U+0130 and U+0131 are one letter
//   groups     numbered; names are resolved here
//
// Limits   64 KiB of expression, groups 100 deep, repeats to 65,535
// Errors   kInvalid where Python refuses the expression; kUnsupported for \N{...}, (?i) with (?a),
//          (a|b??){0,2}, whose groups PCRE2 finds otherwise, and what PCRE2 does not compile
// Source   CPython 3.11, Lib/re/_parser.py and _compiler.py; pcre2pattern(3)
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

struct PythonSyntax {
  std::string pattern;  // for PCRE2 with UTF, where lines end at \n
  int num_groups = 0;
  std::vector<std::pair<std::string, int>> names;  // of groups

  int group_named(std::string_view name) const;  // -1: none has that name
};

PythonSyntax parse_python_regex(std::string_view source);

// "`[0-9]+`", cut where it is long, for a message.
std::string quoted_regex(std::string_view source);

}  // namespace skein
