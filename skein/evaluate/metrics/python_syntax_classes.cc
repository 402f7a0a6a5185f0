// Characters, escapes and sets of python_syntax_parser.h.
#include <array>
#include <string_view>

#include "skein/base/error.h"
#include "skein/evaluate/metrics/python_syntax_parser.h"

namespace skein {
namespace {

constexpr std::string_view kSpaces =
    "\\x09-\\x0d\\x1c-\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
constexpr std::string_view kNoSpaces =
    "\\x00-\\x08\\x0e-\\x1b\\x21-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"
    "\\x{3001}-\\x{10ffff}";
constexpr std::string_view kNoWord = "[^\\p{L}\\p{N}_]";

// Letters that are one to Python's (?i) and more than one to PCRE2's.
constexpr std::array<std::u32string_view, 4> kSameLetters = {U"Ii\u0130\u0131", U"\u0390\u1fd3",
                                                             U"\u03b0\u1fe3", U"\ufb05\ufb06"};

bool is_ascii_letter(char32_t code) {
  return (code >= U'a' && code <= U'z') || (code >= U'A' && code <= U'Z');
}

bool is_octal(char32_t code) { return code >= U'0' && code <= U'7'; }

std::string member(char32_t code) {
  if (is_ascii_letter(code) || (code >= U'0' && code <= U'9')) return {static_cast<char>(code)};
  return fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(code));
}

// The members that (?i) adds to a range, and PCRE2's does not.
std::string same_letters(char32_t first, char32_t last) {
  std::string members;
  for (const std::u32string_view letters : kSameLetters) {
    bool any = false;
    for (const char32_t letter : letters) any = any || (letter >= first && letter <= last);
    if (!any) continue;
    for (const char32_t letter : letters) members += member(letter);
  }
  return members;
}

}  // namespace

std::string regex_literal(char32_t code, const RegexFlags& flags) {
  if (!flags.ignore_case || (code < 0x80 && !is_ascii_letter(code))) return member(code);
  const std::string same = same_letters(code, code);
  return same.empty() ? "(?i:" + member(code) + ")" : "[" + same + "]";
}

std::string_view regex_class_members(char32_t letter, bool ascii) {
  switch (letter) {
    case U'd':
      return ascii ? "0-9" : "\\p{Nd}";
    case U'D':
      return ascii ? "\\x00-\\x2f\\x3a-\\x{10ffff}" : "\\P{Nd}";
    case U's':
      return ascii ? "\\x09-\\x0d\\x20" : kSpaces;
    case U'S':
      return ascii ? "\\x00-\\x08\\x0e-\\x1f\\x21-\\x{10ffff}" : kNoSpaces;
    case U'w':
      return ascii ? "0-9A-Za-z_" : "\\p{L}\\p{N}_";
    case U'W':
      return ascii ? "\\x00-\\x2f\\x3a-\\x40\\x5b-\\x5e\\x60\\x7b-\\x{10ffff}" : std::string_view();
    default:
      return {};
  }
}

char32_t PythonSyntaxParser::hexadecimal(char32_t letter, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) {
    const char32_t code = take("hexadecimal digits");
    const size_t digit = std::u32string_view(U"0123456789abcdefABCDEF").find(code);
    if (digit == std::u32string_view::npos) {
      refuse(fmt::format("\\{} has {} hexadecimal digits", static_cast<char>(letter), count));
    }
    value = value * 16 + static_cast<uint32_t>(digit < 16 ? digit : digit - 6);
  }
  if (value > 0x10ffff) refuse("a character beyond U+10FFFF");
  if (value >= 0xd800 && value <= 0xdfff) refuse_unsupported("a surrogate");
  return value;
}

char32_t PythonSyntaxParser::octal(char32_t first, int most_digits) {
  uint32_t value = first - U'0';
  for (int i = 1; i < most_digits && is_octal(next()); ++i)
    value = value * 8 + (codes_[at_++] - U'0');
  if (value > 0377) refuse("an octal escape beyond \\377");
  return value;
}

char32_t PythonSyntaxParser::character_escape(char32_t letter) {
  switch (letter) {
    case U'a':
      return U'\a';
    case U'f':
      return U'\f';
    case U'n':
      return U'\n';
    case U'r':
      return U'\r';
    case U't':
      return U'\t';
    case U'v':
      return U'\v';
    case U'x':
      return hexadecimal(letter, 2);
    case U'u':
      return hexadecimal(letter, 4);
    case U'U':
      return hexadecimal(letter, 8);
    case U'N':
      refuse_unsupported("\\N{...}");
    default:
      break;
  }
  if (is_ascii_letter(letter)) {
    refuse(fmt::format("the escape \\{} is none of Python's", static_cast<char>(letter)));
  }
  return letter >= U'0' && letter <= U'9' ? kEnd : letter;
}

RegexPart PythonSyntaxParser::escape(const RegexFlags& flags) {
  const char32_t letter = take("a character after \\");
  RegexPart special = anchor(letter, flags);
  if (special.kind != Kind::kNothing) return special;
  if (std::u32string_view(U"dDsSwW").find(letter) != std::u32string_view::npos) {
    const std::string_view members = regex_class_members(letter, flags.ascii);
    return {members.empty() ? std::string(kNoWord) : fmt::format("[{}]", members), Kind::kOther, 1,
            1};
  }
  const char32_t code = character_escape(letter);
  if (code != kEnd) return {regex_literal(code, flags), Kind::kOther, 1, 1};
  if (letter == U'0') return {regex_literal(octal(letter, 3), flags), Kind::kOther, 1, 1};
  int number = static_cast<int>(letter - U'0');
  if (next() >= U'0' && next() <= U'9') {
    const char32_t second = codes_[at_];
    if (is_octal(letter) && is_octal(second) && at_ + 1 < codes_.size() &&
        is_octal(codes_[at_ + 1])) {
      return {regex_literal(octal(letter, 3), flags), Kind::kOther, 1, 1};
    }
    number = number * 10 + static_cast<int>(second - U'0');
    ++at_;
  }
  return back_reference(number, flags);
}

// The character that an escape in [...] means, or kEnd for a class.
char32_t PythonSyntaxParser::set_escape(char32_t letter) {
  if (std::u32string_view(U"dDsSwW").find(letter) != std::u32string_view::npos) return kEnd;
  if (letter == U'b') return U'\b';
  const char32_t code = character_escape(letter);
  if (code != kEnd) return code;
  if (!is_octal(letter)) refuse("an octal escape of the digits 8 or 9");
  return octal(letter, 3);
}

RegexPart PythonSyntaxParser::set(const RegexFlags& flags) {
  const bool negative = match(U'^');
  const size_t begin = at_;
  std::string members;
  bool has_no_word = false;  // \W, of which PCRE2 has no members
  const auto one = [&](char32_t& letter) {
    letter = take("the ] of a set");
    if (letter != U'\\') return letter;
    letter = take("a character after \\");
    return set_escape(letter);
  };
  while (at_ == begin || next() != U']') {
    char32_t letter = 0, last_letter = 0;
    const char32_t first = one(letter);
    char32_t last = first;
    if (next() == U'-' && at_ + 1 < codes_.size() && codes_[at_ + 1] != U']') {
      ++at_;
      last = one(last_letter);
      if (first == kEnd || last == kEnd || last < first) refuse("a range that is none");
    }
    if (first == kEnd) {
      const std::string_view of_class = regex_class_members(letter, flags.ascii);
      members += of_class;
      has_no_word = has_no_word || of_class.empty();
      continue;
    }
    members += last == first ? member(first) : member(first) + "-" + member(last);
    if (flags.ignore_case) members += same_letters(first, last);
  }
  ++at_;
  std::string text = negative          ? members.empty() ? "(?s:.)" : "[^" + members + "]"
                     : members.empty() ? ""
                                       : "[" + members + "]";
  if (flags.ignore_case && !text.empty()) text = "(?i:" + text + ")";
  if (has_no_word) {
    text = negative       ? fmt::format("(?:(?!{}){})", kNoWord, text)
           : text.empty() ? std::string(kNoWord)
                          : fmt::format("(?:{}|{})", kNoWord, text);
  }
  return {text, Kind::kOther, 1, 1};
}

}  // namespace skein
