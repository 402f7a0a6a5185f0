// One character of a regular expression: a letter, an escape, [a set].
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "skein/bpe/unicode/code_points.h"

namespace skein::bpe {

// An expression from left to right.
class ExpressionReader {
 public:
  explicit ExpressionReader(std::string_view source);  // refuses what is not UTF-8

  bool at_end() const { return at_ == source_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool follows(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  bool take(std::string_view text);
  char32_t take_code();
  std::optional<int> take_number(int most);
  bool interval_follows() const;  // {n}, {n,}, {,m}, {n,m}

  std::string_view source() const { return source_; }
  size_t offset() const { return at_; }
  [[noreturn]] void refuse(const std::string& what) const;  // "…: <what> is not read"
  [[noreturn]] void refuse_from(size_t begin, const std::string& what) const;

 private:
  std::string_view source_;
  size_t at_ = 0;
};

struct TakenSet {
  CodePoints set;
  bool is_literal = false;  // one character, `code`
  char32_t code = 0;
};

TakenSet take_set(ExpressionReader& reader, bool ignores_case);

}  // namespace skein::bpe
