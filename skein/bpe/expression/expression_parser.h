// A regular expression as tokenizers write them, taken apart: sets of characters, and what is
// around them in PCRE2's syntax.
//
// Syntax   what Oniguruma's Ruby syntax and PCRE2 agree on: sets with `&&`, nested, \p{…},
//          [:digit:]; groups, (?i:…) of ASCII letters, look around, (?>…); * + ? {n,m}, lazy,
//          possessive * + ?; ^ $ \A \z \Z \b \B
// Errors   Error{kUnsupported} that says what of it is not read
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skein/bpe/unicode/code_points.h"

namespace skein::bpe {

struct ExpressionPart {
  std::string syntax;
  int set = -1;  // index of a set, behind the syntax; -1: none
};

struct ParsedExpression {
  std::vector<ExpressionPart> parts;
  std::vector<CodePoints> sets;  // all different
  std::vector<bool> begins;      // [set]: whether a match may begin with one of it
  bool may_be_empty = false;     // a match may be nothing
};

// A callout (?C) stands wherever the matcher could come again and again for one match.
ParsedExpression parse_expression(std::string_view source);

}  // namespace skein::bpe
