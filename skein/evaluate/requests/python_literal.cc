#include "skein/evaluate/requests/python_literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/utf8.h"
#include "skein/evaluate/requests/python_tokens.h"
#include "skein/jinja/syntax/literals.h"
#include "skein/jinja/values/text.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr int kMostBrackets = 200;

[[noreturn]] void refuse(const std::string& why) { throw LiteralError(why); }

// Line ends are \n, as Python's tokenizer makes them.
std::string with_plain_lines(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') continue;
    made += text[at] == '\r' ? '\n' : text[at];
  }
  return made;
}

class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}
  size_t place() const { return unsupported_.empty() ? at_ : unsupported_at_; }
  // What Python reads and a value cannot hold; empty: nothing.
  const std::string& unsupported() const { return unsupported_; }

  Value whole() {
    skip_blank_lines();
    Value value = items_or_one();
    skip_blank_lines();
    if (at_ < text_.size()) refuse_rest();
    return value;
  }

 private:
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (next() != c || at_ == text_.size()) return false;
    ++at_;
    skip_space();
    return true;
  }
  bool takes_name(std::string_view name) {
    if (text_.substr(at_, jinja::name_size(text_.substr(at_))) != name) return false;
    at_ += name.size();
    skip_space();
    return true;
  }

  // Blanks and comments; inside brackets line ends too.
  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        ++at_;
      } else if (c != ' ' && c != '\t' && c != '\f' && (c != '\n' || num_brackets_ == 0)) {
        return;
      }
    }
  }

  // Lines without anything; the expression itself is not indented.
  void skip_blank_lines() {
    const size_t begin = at_;
    skip_space();
    while (next() == '\n') {
      const size_t line = ++at_;
      skip_space();
      if (at_ > line && next() != '\n' && at_ < text_.size()) refuse("an indented line");
    }
    if (begin > 0 && at_ < text_.size()) refuse_rest();
  }

  [[noreturn]] void refuse_rest() {
    if (at_ >= text_.size()) refuse("the text ends too early");
    const std::string_view rest = text_.substr(at_);
    refuse(fmt::format("'{}' is not expected here", *jinja::Characters(rest).begin()));
  }

  bool digit_follows() const {
    const auto digit = [&](size_t i) {
      return i < text_.size() && text_[i] >= '0' && text_[i] <= '9';
    };
    return digit(at_) || (next() == '.' && digit(at_ + 1));
  }

  void note(const std::string& unsupported) {
    if (unsupported.empty() || !unsupported_.empty()) return;
    unsupported_ = unsupported;
    unsupported_at_ = at_;
  }

  PythonToken number(bool is_negative) {
    PythonToken token = python_number(text_.substr(at_), is_negative);
    note(token.unsupported);
    at_ += token.size;
    if (jinja::name_size(text_.substr(at_)) > 0 || digit_follows())
      refuse("letters or digits right behind a number");
    skip_space();
    return token;
  }

  PythonToken signed_number() {
    const bool is_negative = next() == '-';
    if (is_negative || next() == '+') ++at_;
    skip_space();
    int num_opened = 0;
    for (; next() == '('; ++num_opened) open();
    if (!digit_follows()) refuse("a sign that is not before a number");
    PythonToken token = number(is_negative);
    for (; num_opened > 0; --num_opened) close(')');
    return token;
  }

  // A number, or a sum with an imaginary one: 1+2j.
  Value number_or_sum() {
    const PythonToken first = signed_number();
    if (next() != '+' && next() != '-') return first.value;
    ++at_;
    skip_space();
    if (first.is_imaginary || !digit_follows() || !number(false).is_imaginary)
      refuse("a sum, which is no literal");
    return first.value;
  }

  Value strings() {
    std::string made;
    std::optional<bool> is_bytes;
    for (;;) {
      const PythonToken token = python_string(text_.substr(at_));
      if (token.size == 0) return Value::string(std::move(made));
      if (is_bytes.value_or(token.is_bytes) != token.is_bytes) refuse("bytes right behind text");
      is_bytes = token.is_bytes;
      note(token.unsupported);
      if (token.value.is_string()) made += token.value.text();
      at_ += token.size;
      skip_space();
    }
  }

  void open() {
    if (++num_brackets_ > kMostBrackets)
      refuse(fmt::format("more than {} brackets inside each other", kMostBrackets));
    ++at_;
    skip_space();
  }
  void close(char bracket) {
    if (next() != bracket) refuse_rest();
    --num_brackets_;
    take(bracket);
  }

  Value one() {
    const char c = next();
    if (c == '(') return parentheses();
    if (c == '[') return list();
    if (c == '{') return dict();
    if (c == '+' || c == '-' || digit_follows()) return number_or_sum();
    if (python_string(text_.substr(at_)).size > 0) return strings();
    if (takes_name("None")) return Value::none();
    if (takes_name("True")) return Value::boolean(true);
    if (takes_name("False")) return Value::boolean(false);
    if (text_.substr(at_, 3) == "...") return skipped(3, "`...`");
    if (text_.substr(at_, 5) == "set()") return skipped(5, "a set, which has no order");
    const size_t size = jinja::name_size(text_.substr(at_));
    if (size > 0) refuse(fmt::format("the name {} is no literal", text_.substr(at_, size)));
    refuse_rest();
  }

  Value skipped(size_t size, const char* unsupported) {
    note(unsupported);
    at_ += size;
    skip_space();
    return Value::none();
  }

  // Items with a comma after each but, if need be, the last, up to `end`.
  std::vector<Value> items_until(char end) {
    std::vector<Value> items;
    while (next() != end) {
      items.push_back(one());
      if (!take(',')) break;
    }
    return items;
  }

  Value items_or_one() {
    Value first = one();
    if (!take(',')) return first;
    std::vector<Value> items = {std::move(first)};
    while (at_ < text_.size() && next() != '\n') {
      items.push_back(one());
      if (!take(',')) break;
    }
    return Value::tuple(std::move(items));
  }

  Value parentheses() {
    open();
    if (next() == ')') {
      close(')');
      return Value::tuple({});
    }
    Value first = one();
    if (!take(',')) {
      close(')');
      return first;
    }
    std::vector<Value> items = items_until(')');
    items.insert(items.begin(), std::move(first));
    close(')');
    return Value::tuple(std::move(items));
  }

  Value list() {
    open();
    std::vector<Value> items = items_until(']');
    close(']');
    return Value::list(std::move(items));
  }

  Value dict() {
    open();
    auto made = std::make_shared<jinja::Dict>();
    for (bool is_first = true; next() != '}'; is_first = false) {
      Value key = one();
      if (is_first && (next() == ',' || next() == '}')) return set();
      if (!take(':')) refuse_rest();
      Value value = one();
      try {
        made->set(std::move(key), std::move(value));
      } catch (const jinja::Refusal& refusal) {
        note(refusal.what());
      }
      if (!take(',')) break;
    }
    close('}');
    return Value::of(Kind::kDict, std::move(made));
  }

  // Behind its first item.
  Value set() {
    note("a set, which has no order");
    if (take(',')) items_until('}');
    close('}');
    return Value::none();
  }

  std::string_view text_;
  size_t at_ = 0;
  int num_brackets_ = 0;
  std::string unsupported_;
  size_t unsupported_at_ = 0;
};

}  // namespace

Value python_literal(std::string_view text, const std::string& what) {
  const std::string plain =
      with_plain_lines(text.substr(std::min(text.find_first_not_of(" \t"), text.size())));
  LiteralReader reader(plain);
  const auto refused = [&](ErrorCode code, const std::string& why) {
    const auto character = jinja::count_characters(plain.substr(0, reader.place())) + 1;
    constexpr size_t kMostShown = 60;
    const std::string shown = plain.substr(0, utf8::character_start(plain, kMostShown));
    fail(code, "{}: character {}: {}; expected a literal of Python, found: {}{}", what, character,
         why, shown, shown.size() < plain.size() ? "..." : "");
  };
  try {
    if (plain.find('\0') != plain.npos) refuse("a zero byte");
    Value value = reader.whole();
    if (reader.unsupported().empty()) return value;
  } catch (const LiteralError& error) {
    refused(ErrorCode::kInvalid, error.what());
  }
  refused(ErrorCode::kUnsupported, reader.unsupported());
  return {};
}

}  // namespace skein
