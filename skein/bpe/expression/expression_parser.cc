#include "skein/bpe/expression/expression_parser.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "skein/bpe/expression/sets.h"
#include "skein/bpe/unicode/properties.h"

namespace skein::bpe {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 16;
constexpr int kMaxDepth = 100, kMaxRepeat = 1000;
constexpr size_t kMaxSets = 1000;
constexpr int kFreeChoices = 6;  // that one match may have before a callout guards each more

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view source) : reader_(source) {}

  ParsedExpression parse() {
    if (reader_.source().size() > kMaxBytes) reader_.refuse("more than 64 KiB");
    parsed_.may_be_empty = alternatives();
    if (!reader_.at_end()) reader_.refuse("a ) without its (");
    parsed_.begins.resize(parsed_.sets.size());
    return std::move(parsed_);
  }

 private:
  struct Repeat {
    int least = 1, most = 1;  // most -1: any number
    std::string suffix;       // "?" lazy, "+" possessive

    bool is_once() const { return least == 1 && most == 1; }
  };

  void put(std::string syntax) { parsed_.parts.push_back({std::move(syntax), -1}); }

  void put_set(const CodePoints& set) {
    const auto found = std::find(parsed_.sets.begin(), parsed_.sets.end(), set);
    const auto index = found - parsed_.sets.begin();
    if (found == parsed_.sets.end()) {
      if (parsed_.sets.size() == kMaxSets) reader_.refuse("more than 1,000 different sets");
      parsed_.sets.push_back(set);
    }
    parsed_.parts.push_back({"", static_cast<int>(index)});
    if (!is_begun_) {
      parsed_.begins.resize(std::max(parsed_.begins.size(), parsed_.sets.size()));
      parsed_.begins[static_cast<size_t>(index)] = true;
    }
  }

  // True if what is between bars may match nothing.
  bool alternatives() {
    if (++depth_ > kMaxDepth) reader_.refuse("more than 100 groups in each other");
    const int choices = choices_;
    const bool is_begun = is_begun_;
    int most_choices = choices;
    bool may_be_empty = sequence();
    while (reader_.take("|")) {
      put("|");
      most_choices = std::max(most_choices, choices_);
      choices_ = choices + 1;
      is_begun_ = is_begun;
      may_be_empty |= sequence();
    }
    is_begun_ = is_begun;
    choices_ = std::max(most_choices, choices_);
    --depth_;
    return may_be_empty;
  }

  bool sequence() {
    bool may_be_empty = true;
    literal_.clear();
    const bool ignores_case = ignores_case_;
    while (!reader_.at_end() && reader_.peek() != '|' && reader_.peek() != ')') {
      may_be_empty &= item();
      is_begun_ |= !may_be_empty;
    }
    ignores_case_ = ignores_case;
    literal_.clear();
    return may_be_empty;
  }

  // An atom and how often it stands there.
  bool item() {
    const size_t begin = parsed_.parts.size();
    const size_t begin_at = reader_.offset();
    bool may_repeat = true;
    const bool may_be_empty = atom(may_repeat);
    const size_t first_repeat = reader_.offset();
    const Repeat repeat = take_repeat();
    if (repeat.is_once() && reader_.offset() == first_repeat) return may_be_empty;
    literal_.clear();
    if (!may_repeat) reader_.refuse_from(begin_at, "a repeated mark of a place");
    const bool is_group = parsed_.parts.size() > begin + 1;
    if (may_be_empty && repeat.most != 1) {
      reader_.refuse_from(begin_at, "a repeated group that may match nothing");
    }
    if (repeat.most != 1 && is_group) {
      parsed_.parts.insert(parsed_.parts.begin() + static_cast<ptrdiff_t>(begin) + 1, {"(?C)", -1});
    }
    guard(begin, repeat);
    put_repeat(repeat);
    return may_be_empty || repeat.least == 0;
  }

  // A callout before what makes one more way to match, if there are many already.
  void guard(size_t begin, const Repeat& repeat) {
    if (repeat.least == repeat.most) return;
    const bool is_loop = repeat.most < 0;
    if (choices_ >= kFreeChoices || (is_loop && choices_ > 0)) {
      parsed_.parts.insert(parsed_.parts.begin() + static_cast<ptrdiff_t>(begin), {"(?C)", -1});
    }
    choices_ += is_loop ? kFreeChoices : 1;
  }

  void put_repeat(const Repeat& repeat) {
    if (repeat.most < 0 && repeat.least <= 1) {
      put((repeat.least == 0 ? "*" : "+") + repeat.suffix);
    } else if (repeat.least == 0 && repeat.most == 1) {
      put("?" + repeat.suffix);
    } else if (repeat.most < 0) {
      put("{" + std::to_string(repeat.least) + ",}" + repeat.suffix);
    } else {
      put("{" + std::to_string(repeat.least) + "," + std::to_string(repeat.most) + "}" +
          repeat.suffix);
    }
  }

  Repeat take_repeat() {
    const size_t begin = reader_.offset();
    Repeat repeat;
    bool is_interval = false;
    if (reader_.take("*")) {
      repeat = {0, -1, ""};
    } else if (reader_.take("+")) {
      repeat = {1, -1, ""};
    } else if (reader_.take("?")) {
      repeat = {0, 1, ""};
    } else if (const auto interval = take_interval()) {
      repeat = *interval;
      is_interval = true;
    } else {
      return repeat;
    }
    if (reader_.take("?")) {
      repeat.suffix = "?";
    } else if (!is_interval && reader_.take("+")) {
      repeat.suffix = "+";
    }
    if (is_interval && repeat.suffix == "?" && repeat.least == repeat.most) {
      reader_.refuse_from(begin, "{n}?, which means other than elsewhere");
    }
    if (!reader_.at_end() && (reader_.peek() == '*' || reader_.peek() == '+' ||
                              reader_.peek() == '?' || reader_.interval_follows())) {
      reader_.refuse_from(begin, "a repetition of a repetition");
    }
    return repeat;
  }

  std::optional<Repeat> take_interval() {
    if (!reader_.interval_follows()) return std::nullopt;
    const size_t begin = reader_.offset();
    reader_.take("{");
    Repeat repeat;
    repeat.least = reader_.take_number(kMaxRepeat).value_or(0);
    repeat.most = repeat.least;
    if (reader_.take(",")) repeat.most = reader_.take_number(kMaxRepeat).value_or(-1);
    reader_.take("}");
    if (repeat.most >= 0 && repeat.least > repeat.most) {
      reader_.refuse_from(begin, "an interval whose first number is the larger one");
    }
    return repeat;
  }

  // True if it may match nothing.
  bool atom(bool& may_repeat) {
    const size_t begin = reader_.offset();
    if (reader_.take("(")) return group(may_repeat);
    if (reader_.take(".")) {
      put_set(CodePoints{{'\n', '\n'}}.complement());
      return false;
    }
    if (place()) {
      may_repeat = false;
      return true;
    }
    if (reader_.interval_follows()) reader_.refuse_from(begin, "an interval of nothing");
    for (const char c : {'*', '+', '?'}) {
      if (reader_.peek() == c) reader_.refuse_from(begin, "a repetition of nothing");
    }
    const TakenSet taken = take_set(reader_, ignores_case_);
    if (ignores_case_) note_literal(taken);
    put_set(taken.set);
    return false;
  }

  // Letters that another character stands for when case does not count: "ss" for U+00DF.
  void note_literal(const TakenSet& taken) {
    if (!taken.is_literal) return literal_.clear();
    const char c = static_cast<char>(taken.code < 128 ? taken.code | 0x20 : 0);
    literal_.push_back(c);
    for (const std::string_view pair : {"ss", "st", "ff", "fi", "fl"}) {
      if (literal_.ends_with(pair)) {
        reader_.refuse("letters without case (" + std::string(pair) +
                       ") that one character may stand for");
      }
    }
  }

  // Marks of a place, which match nothing.
  bool place() {
    const auto around = [&](std::string_view before, const CodePoints& set,
                            std::string_view behind) {
      put(std::string(before));
      put_set(set);
      put(std::string(behind));
    };
    const CodePoints newline{{'\n', '\n'}};
    if (reader_.take("^")) {
      around("(?:\\A|(?<=", newline, ")(?!\\z))");
    } else if (reader_.take("$")) {
      around("(?=\\z|", newline, ")");
    } else if (reader_.take("\\A")) {
      put("\\A");
    } else if (reader_.take("\\z")) {
      put("\\z");
    } else if (reader_.take("\\Z")) {
      around("(?=", newline, "?\\z)");
    } else if (reader_.take("\\b")) {
      word_boundary("(?:(?<=", ")(?!", ")|(?<!", ")(?=", "))");
    } else if (reader_.take("\\B")) {
      word_boundary("(?:(?<=", ")(?=", ")|(?<!", ")(?!", "))");
    } else {
      return false;
    }
    literal_.clear();
    return true;
  }

  void word_boundary(const char* a, const char* b, const char* c, const char* d, const char* e) {
    const CodePoints& word = unicode_word();
    put(a), put_set(word), put(b), put_set(word), put(c), put_set(word), put(d), put_set(word);
    put(e);
  }

  bool group(bool& may_repeat) {
    const size_t begin = reader_.offset() - 1;
    const bool ignores_case = ignores_case_;
    const std::string literal = std::exchange(literal_, "");
    std::string open = "(?:";
    bool is_look = false;
    if (reader_.take("?")) {
      if (reader_.take("#")) {
        while (!reader_.at_end() && reader_.peek() != ')') reader_.take_code();
        if (!reader_.take(")")) reader_.refuse_from(begin, "a comment without end");
        may_repeat = false;
        return true;
      }
      const char* const looks[] = {"=", "!", "<=", "<!"};
      const auto look = std::find_if(std::begin(looks), std::end(looks),
                                     [&](const char* each) { return reader_.take(each); });
      if (look != std::end(looks)) {
        open = std::string("(?") + *look;
        is_look = true;
      } else if (reader_.take(">")) {
        open = "(?>";
      } else if (reader_.take("<")) {
        take_name(begin);
      } else if (!reader_.take(":")) {
        if (take_options(begin)) return may_repeat = false, true;
      }
    }
    put(open);
    const bool may_be_empty = alternatives();
    if (!reader_.take(")")) reader_.refuse_from(begin, "a ( without its )");
    put(")");
    ignores_case_ = ignores_case;
    may_repeat = !is_look;
    return may_be_empty || is_look;
  }

  void take_name(size_t begin) {
    bool is_name = !reader_.at_end() && reader_.peek() != '>';
    while (!reader_.at_end() && reader_.peek() != '>') {
      const char32_t code = reader_.take_code();
      is_name &= code == '_' || (code < 128 && std::isalnum(static_cast<int>(code)));
    }
    if (!is_name || !reader_.take(">")) reader_.refuse_from(begin, "a group of this kind");
  }

  // (?i:…), (?-i:…), and (?i) for the rest of a group; true for the last.
  bool take_options(size_t begin) {
    const bool is_off = reader_.take("-");
    if (!reader_.take("i")) reader_.refuse_from(begin, "a group of this kind");
    ignores_case_ = !is_off;
    if (reader_.take(":")) return false;
    if (!reader_.take(")")) reader_.refuse_from(begin, "a group of this kind");
    put("(?:");  // up to the end of the group, over its bars
    alternatives();
    put(")");
    return true;
  }

  ExpressionReader reader_;
  ParsedExpression parsed_;
  bool ignores_case_ = false;
  bool is_begun_ = false;  // a character stands before
  int depth_ = 0;
  int choices_ = 0;      // how many ways one match has so far, in steps
  std::string literal_;  // letters side by side whose case does not count
};

}  // namespace

ParsedExpression parse_expression(std::string_view source) {
  return ExpressionParser(source).parse();
}

}  // namespace skein::bpe
