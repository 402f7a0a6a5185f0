// The parser behind python_syntax.h; for python_syntax*.cc alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/evaluate/metrics/python_syntax.h"

namespace skein {

struct RegexFlags {
  bool ignore_case = false, multi_line = false, dot_all = false, ascii = false, verbose = false;
};

// What is parsed, in PCRE2's syntax, and how many characters it matches.
struct RegexPart {
  enum class Kind : uint8_t { kNothing, kAnchor, kAssertion, kRepeat, kOther };
  std::string text;
  Kind kind = Kind::kNothing;
  int64_t least = 0, most = 0;
  bool has_choice = false;  // a lazy repeat or alternatives: it may match nothing first
};

class PythonSyntaxParser {
 public:
  explicit PythonSyntaxParser(std::string_view source);
  PythonSyntax parse();

 private:
  using Kind = RegexPart::Kind;
  static constexpr char32_t kEnd = 0xffffffff;

  char32_t next() const { return at_ < codes_.size() ? codes_[at_] : kEnd; }
  bool match(char32_t code) {
    if (next() != code) return false;
    ++at_;
    return true;
  }
  char32_t take(const char* expected);
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void refuse_unsupported(const std::string& what) const;

  // python_syntax.cc
  RegexPart alternatives(RegexFlags& flags, int depth);
  RegexPart sequence(RegexFlags& flags, int depth, bool is_first);
  RegexPart item(char32_t code, const RegexFlags& flags, int depth);
  RegexPart anchor(char32_t code, const RegexFlags& flags);
  bool skip_verbose(const RegexFlags& flags);
  bool repeat_range(char32_t code, int64_t& least, int64_t& most);
  int64_t digits(bool& any);
  void repeat(RegexPart& part, int64_t least, int64_t most);

  // python_syntax_groups.cc
  RegexPart group(const RegexFlags& flags, int depth);
  RegexPart capture(const std::string& name, const RegexFlags& flags, int depth);
  RegexPart look_around(bool behind, bool negative, const RegexFlags& flags, int depth);
  RegexPart conditional(const RegexFlags& flags, int depth);
  RegexPart flagged_group(const RegexFlags& flags, int depth);
  RegexPart body(RegexFlags flags, int depth, const char* opening);
  RegexPart back_reference(int number, const RegexFlags& flags);
  std::string name_until(char32_t end);
  int group_number(const std::string& name);
  bool global_flags(RegexFlags& flags);
  void set_flag(char32_t letter, RegexFlags& flags, bool on);

  // python_syntax_classes.cc
  RegexPart escape(const RegexFlags& flags);
  RegexPart set(const RegexFlags& flags);
  char32_t set_escape(char32_t letter);
  char32_t character_escape(char32_t letter);  // of what \x, \n and the like mean, or kEnd
  char32_t hexadecimal(char32_t letter, int count);
  char32_t octal(char32_t first, int most_digits);

  struct Group {
    bool is_open = true;
    int64_t least = 0, most = 0;
  };

  std::string_view source_;
  std::vector<char32_t> codes_;
  size_t at_ = 0;
  std::vector<Group> groups_;  // [number - 1]
  int first_behind_ = -1;      // the first group of the look-behind that is being parsed
  int most_referenced_ = 0;    // by a conditional, of groups that may come later
  PythonSyntax result_;
};

// A literal character; a set of ranges, with what PCRE2 spells otherwise in it.
std::string regex_literal(char32_t code, const RegexFlags& flags);
// The members that \d, \D, \s, \S, \w have inside [...]; nothing for \W, which has none.
std::string_view regex_class_members(char32_t letter, bool ascii);

}  // namespace skein
