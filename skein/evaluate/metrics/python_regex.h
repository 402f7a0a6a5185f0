// Expressions of Python's `re` on text: findall, sub and what lm-evaluation-harness uses of it.
//
// Limits   64 MiB of memory and 10,000,000 steps of PCRE2 for each start of a match; 20 s of
//          processor time for a text, where Python would run on
// Errors   those of python_syntax.h; kUnsupported, with the expression, beyond a limit; kInvalid
//          for a text that is not UTF-8, and for a replacement that Python refuses
// Threads  several may match with one expression at once
// Source   CPython 3.11, Lib/re; pcre2api(3)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/evaluate/metrics/python_syntax.h"

struct pcre2_real_code_8;

namespace skein {

class PythonRegex {
 public:
  explicit PythonRegex(std::string_view source);

  const std::string& source() const { return source_; }
  int num_groups() const { return syntax_.num_groups; }

  // Of one match: the whole, then each group; nothing for a group that took no part.
  using Match = std::vector<std::optional<std::string_view>>;
  // Calls `found` for each match of re.finditer, until it returns false.
  void for_each_match(std::string_view text, const std::function<bool(const Match&)>& found) const;

  // Of each match of re.findall, the whole if the expression has no group, else all groups; ""
  // for a group that took no part.
  std::vector<std::vector<std::string>> find_all(std::string_view text) const;

  // re.sub(expression, replacement, text, count); count 0: all. The replacement has \1, \g<1>,
  // \g<name> and escapes.
  std::string substitute(std::string_view replacement, std::string_view text,
                         int64_t count = 0) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };

  std::string source_;
  PythonSyntax syntax_;
  std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
};

// re.escape.
std::string escape_python_regex(std::string_view text);

// len(re.split(r"\s+", text)): one more than the runs of whitespace.
int64_t count_split_words(std::string_view text);

}  // namespace skein
