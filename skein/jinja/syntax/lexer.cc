#include "skein/jinja/syntax/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "skein/base/text/utf8.h"
#include "skein/base/text/visible_text.h"
#include "skein/jinja/syntax/literals.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

constexpr std::array<std::string_view, 28> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]",
    "(",  ")",  "{",  "}",  ">",  "<",  "=", ".", ":", "|", ",", ";", "",  ""};

// \r\n and \r as \n, and no line break at the end.
std::string normalized(std::string_view source, bool keep_trailing_newline) {
  std::string made;
  made.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      made += '\n';
    } else {
      made += source[i];
    }
  }
  if (!keep_trailing_newline && !made.empty() && made.back() == '\n') made.pop_back();
  return made;
}

class Lexer {
 public:
  Lexer(std::string source, const std::string& name, const Syntax& syntax)
      : source_(std::move(source)), name_(name), syntax_(syntax) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text_and_tag();
    add(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool here(std::string_view text) const { return source_.compare(at_, text.size(), text) == 0; }

  SourcePosition place() {
    // Places are asked for in rising order.
    for (; placed_ < at_; ++placed_) {
      if (source_[placed_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if (!utf8::is_continuation(source_[placed_])) {
        ++place_.column;
      }
    }
    return place_;
  }

  [[noreturn]] void fail_here(const std::string& why) {
    fail_at(ErrorCode::kInvalid, name_, place(), why);
  }

  Token& add(TokenKind kind, std::string text = {}) {
    tokens_.push_back({kind, std::move(text), {}, place()});
    return tokens_.back();
  }

  void skip_spaces() {
    const std::string_view left = rest();
    at_ += left.size() - strip(left, Side::kLeft, nullptr).size();
  }

  // Data up to the next tag, and the tag.
  void text_and_tag() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        add_data(rest());
        at_ = source_.size();
        return;
      }
      const char second = source_[tag + 1];
      if (second == '{' || second == '%' || second == '#') break;
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    std::string_view data = rest().substr(0, tag - at_);
    if (sign == '-') {
      data = strip(data, Side::kRight, nullptr);
    } else if (sign != '+' && syntax_.lstrip_blocks && kind != '{') {
      data = without_indentation(data);
    }
    add_data(data);
    at_ = tag;
    const size_t inside = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
    if (kind == '#') return comment(inside);
    if (kind == '%' && raw(inside)) return;
    add(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin);
    at_ = inside;
    tag_content(kind == '%');
  }

  // Blanks between the last line break and a tag, at which `data` ends.
  std::string_view without_indentation(std::string_view data) const {
    const size_t line = data.rfind('\n') + 1;  // 0 where there is none
    if (line == 0 && !line_starting_) return data;
    const std::string_view last = data.substr(line);
    return strip(last, Side::kLeft, nullptr).empty() ? data.substr(0, line) : data;
  }

  void add_data(std::string_view data) {
    if (!data.empty()) add(TokenKind::kData, std::string(data));
  }

  // Ends a tag whose end of two characters begins at `at_`.
  void end_of_tag(bool strips, bool trims) {
    at_ += 2;
    if (strips) {
      skip_spaces();
    } else if (trims && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
    }
    line_starting_ = source_[at_ - 1] == '\n';
  }

  void comment(size_t inside) {
    const size_t end = source_.find("#}", inside);
    if (end == std::string::npos) fail_here("the comment that begins here has no end, #}");
    const char sign = end > inside ? source_[end - 1] : '\0';
    at_ = end;
    end_of_tag(sign == '-', sign != '+' && syntax_.trim_blocks);
  }

  // {% raw %} … {% endraw %}; false where `inside` begins another tag.
  bool raw(size_t inside) {
    const auto spaces = [&](size_t from) {
      const std::string_view left =
          std::string_view(source_).substr(std::min(from, source_.size()));
      return from + left.size() - strip(left, Side::kLeft, nullptr).size();
    };
    size_t at = spaces(inside);
    if (source_.compare(at, 3, "raw") != 0) return false;
    at = spaces(at + 3);
    const bool strips = source_.compare(at, 3, "-%}") == 0;
    if (!strips && source_.compare(at, 2, "%}") != 0) return false;
    const SourcePosition begin = place();
    at_ = strips ? at + 1 : at;
    end_of_tag(strips, false);
    for (size_t tag = at_;; tag += 2) {
      tag = source_.find("{%", tag);
      if (tag == std::string::npos) {
        fail_at(ErrorCode::kInvalid, name_, begin, "the raw block that begins here has no endraw");
      }
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      size_t end = spaces(tag + 2 + (sign == '-' || sign == '+' ? 1 : 0));
      if (source_.compare(end, 6, "endraw") != 0) continue;
      end = spaces(end + 6);
      const char end_sign = end < source_.size() ? source_[end] : '\0';
      if (end_sign == '-' || end_sign == '+') ++end;
      if (source_.compare(end, 2, "%}") != 0) continue;
      std::string_view data = rest().substr(0, tag - at_);
      if (sign == '-') {
        data = strip(data, Side::kRight, nullptr);
      } else if (sign != '+' && syntax_.lstrip_blocks) {
        data = without_indentation(data);
      }
      add_data(data);
      at_ = end;
      end_of_tag(end_sign == '-', end_sign != '+' && syntax_.trim_blocks);
      return true;
    }
  }

  // Up to the tag's end, which does not count inside brackets.
  void tag_content(bool is_block) {
    const std::string_view end = is_block ? "%}" : "}}";
    const SourcePosition begin = tokens_.back().place;
    std::string closing;
    for (;;) {
      skip_spaces();
      if (at_ >= source_.size()) {
        fail_at(ErrorCode::kInvalid, name_, begin,
                fmt::format("the tag that begins here has no end, {}", end));
      }
      if (closing.empty()) {
        const char sign = source_[at_];
        const bool signed_end =
            (sign == '-' || (sign == '+' && is_block)) && source_.compare(at_ + 1, 2, end) == 0;
        if (signed_end || here(end)) {
          add(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd);
          if (signed_end) ++at_;
          const bool strips = signed_end && sign == '-';
          end_of_tag(strips, is_block && !signed_end && syntax_.trim_blocks);
          return;
        }
      }
      token(closing);
    }
  }

  void token(std::string& closing) {
    const char first = source_[at_];
    const char before = at_ > 0 ? source_[at_ - 1] : '\0';
    if (first >= '0' && first <= '9') {
      Token& number = add(TokenKind::kNumber);
      try {
        at_ += read_number(rest(), before == '.', number.number);
      } catch (const Refusal& refusal) {
        fail_here(refusal.what());
      }
      return;
    }
    if (const size_t size = name_size(rest()); size > 0) {
      add(TokenKind::kName, std::string(rest().substr(0, size)));
      at_ += size;
      return;
    }
    if (first == '\'' || first == '"') return string(first);
    for (const std::string_view symbol : kOperators) {
      if (symbol.empty() || !here(symbol)) continue;
      balance(symbol[0], closing);
      add(TokenKind::kOperator, std::string(symbol));
      at_ += symbol.size();
      return;
    }
    fail_here(fmt::format("unexpected character '{}'", *Characters(rest()).begin()));
  }

  void balance(char symbol, std::string& closing) {
    if (symbol == '(') closing += ')';
    if (symbol == '[') closing += ']';
    if (symbol == '{') closing += '}';
    if (symbol != ')' && symbol != ']' && symbol != '}') return;
    if (closing.empty()) fail_here(fmt::format("unexpected '{}'", symbol));
    if (closing.back() != symbol) {
      fail_here(fmt::format("unexpected '{}', expected '{}'", symbol, closing.back()));
    }
    closing.pop_back();
  }

  void string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_here("the string that begins here has no end");
    Token& token = add(TokenKind::kString);
    try {
      token.text = unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1));
    } catch (const Refusal& refusal) {
      fail_here(refusal.what());
    }
    at_ = end + 1;
  }

  const std::string source_;
  const std::string& name_;
  const Syntax syntax_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  bool line_starting_ = true;
  size_t placed_ = 0;
  SourcePosition place_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, const std::string& name,
                             const Syntax& syntax) {
  if (!is_valid_utf8(source)) fail(ErrorCode::kInvalid, "{}: not UTF-8", name);
  return Lexer(normalized(source, syntax.keep_trailing_newline), name, syntax).run();
}

void fail_at(ErrorCode code, const std::string& name, SourcePosition place,
             const std::string& why) {
  throw Error(code, fmt::format("{}:{}:{}: {}", name, place.line, place.column, why));
}

}  // namespace skein::jinja
