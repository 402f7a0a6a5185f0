// Groups, flags and references of python_syntax_parser.h.
#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/utf8.h"
#include "skein/evaluate/metrics/python_syntax_parser.h"

namespace skein {
namespace {

bool is_flag(char32_t code) {
  return std::u32string_view(U"imsxauL").find(code) != std::u32string_view::npos;
}

}  // namespace

// The rest of a group after its `opening`, and its ).
RegexPart PythonSyntaxParser::body(RegexFlags flags, int depth, const char* opening) {
  RegexPart part = alternatives(flags, depth + 1);
  if (!match(U')')) refuse("a ( without a )");
  part.text = opening + part.text + ")";
  part.kind = Kind::kOther;
  return part;
}

RegexPart PythonSyntaxParser::group(const RegexFlags& flags, int depth) {
  if (!match(U'?')) return capture("", flags, depth);
  const char32_t code = take("what kind of group it is");
  switch (code) {
    case U':':
      return body(flags, depth, "(?:");
    case U'>':
      return body(flags, depth, "(?>");
    case U'=':
    case U'!':
      return look_around(false, code == U'!', flags, depth);
    case U'(':
      return conditional(flags, depth);
    case U'#':
      while (take("the ) of the comment") != U')') {
      }
      return {};
    case U'<': {
      const char32_t kind = take("= or !");
      if (kind != U'=' && kind != U'!') refuse("an unknown kind of group");
      return look_around(true, kind == U'!', flags, depth);
    }
    case U'P':
      if (match(U'<')) return capture(name_until(U'>'), flags, depth);
      if (match(U'=')) return back_reference(group_number(name_until(U')')), flags);
      refuse("an unknown kind of group");
    default:
      --at_;
      return flagged_group(flags, depth);
  }
}

RegexPart PythonSyntaxParser::capture(const std::string& name, const RegexFlags& flags, int depth) {
  groups_.emplace_back();
  const size_t number = groups_.size();
  if (!name.empty()) {
    if (result_.group_named(name) >= 0) refuse(fmt::format("a second group named {}", name));
    result_.names.emplace_back(name, static_cast<int>(number));
  }
  RegexPart part = body(flags, depth, "(");
  groups_[number - 1] = {false, part.least, part.most};
  return part;
}

RegexPart PythonSyntaxParser::look_around(bool behind, bool negative, const RegexFlags& flags,
                                          int depth) {
  const int outer = first_behind_;
  if (behind && outer < 0) first_behind_ = static_cast<int>(groups_.size()) + 1;
  const char* const opening = behind ? (negative ? "(?<!" : "(?<=") : negative ? "(?!" : "(?=";
  RegexPart part = body(flags, depth, opening);
  first_behind_ = outer;
  if (behind && part.least != part.most) refuse("a look-behind of more than one width");
  part.kind = Kind::kAssertion;
  part.least = part.most = 0;
  return part;
}

RegexPart PythonSyntaxParser::conditional(const RegexFlags& flags, int depth) {
  const std::string name = name_until(U')');
  const bool is_number =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  const int number = is_number && name.size() < 4 ? std::stoi(name)
                     : is_number                  ? 0
                                                  : group_number(name);
  if (number < 1) refuse("it has no group of that number");
  most_referenced_ = std::max(most_referenced_, number);
  RegexFlags inner = flags;
  RegexPart part = sequence(inner, depth + 1, false);
  part.text = fmt::format("(?({}){}", number, part.text);
  part.has_choice = true;
  if (match(U'|')) {
    const RegexPart other = sequence(inner, depth + 1, false);
    part.text += '|' + other.text;
    part.least = std::min(part.least, other.least);
    part.most = std::max(part.most, other.most);
    if (next() == U'|') refuse("a conditional of more than two branches");
  } else {
    part.least = 0;
  }
  if (!match(U')')) refuse("a ( without a )");
  part.text += ')';
  part.kind = Kind::kOther;
  return part;
}

std::string PythonSyntaxParser::name_until(char32_t end) {
  std::string name;
  for (char32_t code = take("the name of a group"); code != end;
       code = take("the end of the name of a group")) {
    const bool is_letter = (code >= U'a' && code <= U'z') || (code >= U'A' && code <= U'Z') ||
                           code == U'_' || code > 0x7f;
    const bool is_digit = code >= U'0' && code <= U'9';
    if (!is_letter && !is_digit) refuse("a name of a group that is none in Python");
    utf8::append(name, code);
  }
  if (name.empty()) refuse("a group without a name");
  if (end == U'>' && name[0] >= '0' && name[0] <= '9') refuse("a name that begins with a digit");
  return name;
}

int PythonSyntaxParser::group_number(const std::string& name) {
  const int number = result_.group_named(name);
  if (number < 0) refuse(fmt::format("it has no group named {}", name));
  return number;
}

RegexPart PythonSyntaxParser::back_reference(int number, const RegexFlags& flags) {
  if (number > static_cast<int>(groups_.size())) refuse(fmt::format("it has no group {}", number));
  const Group& to = groups_[static_cast<size_t>(number) - 1];
  if (to.is_open) refuse(fmt::format("group {} is still open", number));
  if (first_behind_ >= 0 && number >= first_behind_) {
    refuse(fmt::format("group {} is in the same look-behind", number));
  }
  return {fmt::format("{}\\g{{{}}})", flags.ignore_case ? "(?i:" : "(?:", number), Kind::kOther,
          to.least, to.most};
}

void PythonSyntaxParser::set_flag(char32_t letter, RegexFlags& flags, bool on) {
  switch (letter) {
    case U'i':
      flags.ignore_case = on;
      break;
    case U'm':
      flags.multi_line = on;
      break;
    case U's':
      flags.dot_all = on;
      break;
    case U'x':
      flags.verbose = on;
      break;
    case U'a':
      flags.ascii = true;
      break;
    case U'u':
      flags.ascii = false;
      break;
    case U'L':
      refuse("the flag L, which is of bytes");
    default:
      refuse("an unknown flag or kind of group");
  }
  if (!on && (letter == U'a' || letter == U'u')) refuse("a flag that cannot be turned off");
  if (flags.ascii && flags.ignore_case) refuse_unsupported("(?i) with (?a)");
}

// (?i): flags of all that follows. Whether the ( that was just read begins them.
bool PythonSyntaxParser::global_flags(RegexFlags& flags) {
  size_t end = at_;
  if (end >= codes_.size() || codes_[end] != U'?') return false;
  for (++end; end < codes_.size() && is_flag(codes_[end]);) ++end;
  if (end == at_ + 1 || end >= codes_.size() || codes_[end] != U')') return false;
  const std::u32string letters(codes_.begin() + static_cast<ptrdiff_t>(at_) + 1,
                               codes_.begin() + static_cast<ptrdiff_t>(end));
  if (letters.find(U'a') != letters.npos && letters.find(U'u') != letters.npos) {
    refuse("the flags a and u, which exclude each other");
  }
  at_ = end + 1;
  for (const char32_t letter : letters) set_flag(letter, flags, true);
  return true;
}

// (?i-s:...)
RegexPart PythonSyntaxParser::flagged_group(const RegexFlags& flags, int depth) {
  RegexFlags inner = flags;
  std::u32string seen;
  bool on = true;
  for (char32_t code = take("flags"); code != U':'; code = take("flags, and : or )")) {
    if (code == U'-' && on && next() != U':') {
      on = false;
      continue;
    }
    set_flag(code, inner, on);
    if (seen.find(code) != seen.npos && !on) refuse("a flag that is turned on and off");
    seen += code;
    if (seen.find(U'a') != seen.npos && seen.find(U'u') != seen.npos) {
      refuse("the flags a and u, which exclude each other");
    }
  }
  return body(inner, depth, "(?:");
}

}  // namespace skein
