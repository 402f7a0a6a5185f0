// re.sub of python_regex.h.
#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/utf8.h"
#include "skein/evaluate/metrics/python_regex.h"

namespace skein {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_octal(char c) { return c >= '0' && c <= '7'; }

// A replacement: text, and groups between it.
struct Piece {
  std::string text;
  int group = -1;  // after the text; -1: none
};

class ReplacementParser {
 public:
  ReplacementParser(std::string_view source, const PythonSyntax& syntax)
      : source_(source), syntax_(syntax) {}

  std::vector<Piece> parse() {
    while (at_ < source_.size()) {
      if (source_[at_] != '\\') {
        last_.text += source_[at_++];
      } else {
        ++at_;
        escape();
      }
    }
    pieces_.push_back(std::move(last_));
    return std::move(pieces_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorCode::kInvalid, "the replacement {} is not one of Python's: at byte {}: {}",
         quoted_regex(source_), at_, why);
  }

  char next() const { return at_ < source_.size() ? source_[at_] : '\0'; }

  void add_group(int number) {
    if (number > syntax_.num_groups) refuse(fmt::format("the expression has no group {}", number));
    last_.group = number;
    pieces_.push_back(std::move(last_));
    last_ = {};
  }

  void escape() {
    if (at_ >= source_.size()) refuse("it ends with a \\");
    const char c = source_[at_++];
    constexpr std::string_view kLetters = "abfnrtv", kCodes = "\a\b\f\n\r\t\v";
    if (c == 'g') {
      add_group(named_group());
    } else if (is_digit(c)) {
      number(c);
    } else if (const size_t i = kLetters.find(c); i != kLetters.npos) {
      last_.text += kCodes[i];
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      refuse(fmt::format("the escape \\{} is none of Python's", c));
    } else {
      last_.text += '\\';
      last_.text += c;
      if (c == '\\') last_.text.pop_back();
    }
  }

  // \0 and \012 are octal, \123 too; \1 and \12 are groups.
  void number(char first) {
    int value = first - '0';
    if (first == '0') {
      for (int i = 0; i < 2 && is_octal(next()); ++i) value = value * 8 + (source_[at_++] - '0');
      utf8::append(last_.text, static_cast<char32_t>(value));
      return;
    }
    if (is_digit(next())) {
      const char second = source_[at_++];
      if (is_octal(first) && is_octal(second) && is_octal(next())) {
        value = value * 64 + (second - '0') * 8 + (source_[at_++] - '0');
        if (value > 0377) refuse("an octal escape beyond \\377");
        utf8::append(last_.text, static_cast<char32_t>(value));
        return;
      }
      value = value * 10 + (second - '0');
    }
    add_group(value);
  }

  int named_group() {
    if (next() != '<') refuse("expected < after \\g");
    const size_t end = source_.find('>', ++at_);
    if (end == source_.npos) refuse("expected > after the name of a group");
    const std::string name(source_.substr(at_, end - at_));
    at_ = end + 1;
    if (name.empty()) refuse("a group without a name");
    if (std::all_of(name.begin(), name.end(), is_digit)) {
      if (name.size() > 3) refuse("a group of that number");
      return std::stoi(name);
    }
    const int number = syntax_.group_named(name);
    if (number < 0) refuse(fmt::format("the expression has no group named {}", name));
    return number;
  }

  std::string_view source_;
  const PythonSyntax& syntax_;
  size_t at_ = 0;
  std::vector<Piece> pieces_;
  Piece last_;
};

}  // namespace

std::string PythonRegex::substitute(std::string_view replacement, std::string_view text,
                                    int64_t count) const {
  constexpr size_t kMaxResult = size_t{256} << 20;
  const std::vector<Piece> pieces = ReplacementParser(replacement, syntax_).parse();
  if (count < 0) return std::string(text);
  std::string result;
  const char* copied = text.data();
  int64_t replaced = 0;
  for_each_match(text, [&](const Match& match) {
    result.append(copied, match[0]->data());
    copied = match[0]->data() + match[0]->size();
    for (const Piece& piece : pieces) {
      result += piece.text;
      if (piece.group >= 0) result += match[static_cast<size_t>(piece.group)].value_or("");
    }
    if (result.size() > kMaxResult) {
      fail(ErrorCode::kUnsupported, "the replacements of {} make a text of more than {} bytes",
           quoted_regex(source_), kMaxResult);
    }
    return ++replaced != count;
  });
  if (copied != nullptr) result.append(copied, text.data() + text.size());
  return result;
}

}  // namespace skein
