#include "skein/bpe/expression/sets.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "skein/base/error.h"
#include "skein/bpe/unicode/invalid_utf8.h"
#include "skein/bpe/unicode/properties.h"

namespace skein::bpe {
namespace {

constexpr int kMaxDepth = 50;

using NamedSets = std::map<std::string_view, CodePoints>;

const NamedSets& named_sets() {
  static const NamedSets sets = [] {
    NamedSets all{{"\\w", unicode_word()},
                  {"\\s", unicode_spaces()},
                  {"\\d", *unicode_property("Nd")},
                  {"\\h", CodePoints{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
    all["\\W"] = all["\\w"].complement();
    all["\\S"] = all["\\s"].complement();
    all["\\D"] = all["\\d"].complement();
    all["\\H"] = all["\\h"].complement();
    return all;
  }();
  return sets;
}

// \w between brackets leaves these out, as Oniguruma has it.
const CodePoints& word_in_brackets() {
  static const CodePoints word =
      unicode_word().both(CodePoints{{0xb2, 0xb3}, {0xb9, 0xb9}, {0xbc, 0xbe}}.complement());
  return word;
}

const NamedSets& bracket_sets() {
  static const NamedSets sets = [] {
    NamedSets all{{"word", word_in_brackets()},
                  {"space", unicode_spaces()},
                  {"digit", *unicode_property("Nd")},
                  {"cntrl", *unicode_property("Cc")},
                  {"ascii", CodePoints{{0, 127}}},
                  {"xdigit", CodePoints{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
                  {"blank", *unicode_property("Zs")},
                  {"punct", *unicode_property("P")}};
    all["blank"].add('\t', '\t');
    all["punct"].add(*unicode_property("S"));
    return all;
  }();
  return sets;
}

// Every character that is one of these but for its case, where these are ASCII letters and signs.
CodePoints without_case(const CodePoints& set, const ExpressionReader& reader, size_t begin) {
  static const CodePoints kCased = [] {
    CodePoints cased = *unicode_property("L");
    for (const char* const name : {"M", "Nl", "So"}) cased.add(*unicode_property(name));
    return cased.both(CodePoints{{128, CodePoints::kLast}});
  }();
  CodePoints closed = set;
  for (char32_t lower = 'a'; lower <= 'z'; ++lower) {
    const char32_t upper = lower - 'a' + 'A';
    if (!set.contains(lower) && !set.contains(upper)) continue;
    closed.add(lower, lower);
    closed.add(upper, upper);
    if (lower == 'k') closed.add(0x212a, 0x212a);  // the sign of kelvins
    if (lower == 's') closed.add(0x17f, 0x17f);    // the long s
  }
  if (!set.both(kCased).empty()) {
    reader.refuse_from(begin, "letters without case that are not ASCII");
  }
  return closed;
}

class SetReader {
 public:
  SetReader(ExpressionReader& reader, bool ignores_case)
      : reader_(reader), ignores_case_(ignores_case) {}

  TakenSet take() {
    const size_t begin = reader_.offset();
    if (reader_.take("[")) return {bracket(begin), false, 0};
    TakenSet taken = one(begin);
    if (ignores_case_ && taken.is_literal) taken.set = closed(taken.set, begin);
    return taken;
  }

 private:
  CodePoints closed(const CodePoints& set, size_t begin) const {
    return ignores_case_ ? without_case(set, reader_, begin) : set;
  }

  // A character or an escape.
  TakenSet one(size_t begin) {
    if (!reader_.follows("\\")) return literal(reader_.take_code());
    for (const auto& [escape, set] : named_sets()) {
      if (!reader_.take(escape)) continue;
      if (ignores_case_ && (escape == "\\w" || escape == "\\W")) {
        reader_.refuse_from(begin, "\\w without case");
      }
      if (depth_ > 0 && escape == "\\w") return {word_in_brackets(), false, 0};
      if (depth_ > 0 && escape == "\\W") return {word_in_brackets().complement(), false, 0};
      return {set, false, 0};
    }
    if (reader_.take("\\p{")) return {property(begin, false), false, 0};
    if (reader_.take("\\P{")) return {property(begin, true), false, 0};
    reader_.take("\\");
    if (reader_.at_end()) reader_.refuse_from(begin, "a \\ at the end");
    return literal(escaped(begin));
  }

  static TakenSet literal(char32_t code) { return {CodePoints{{code, code}}, true, code}; }

  CodePoints property(size_t begin, bool is_negated) {
    if (reader_.take("^")) is_negated = !is_negated;
    const size_t name_begin = reader_.offset();
    while (!reader_.at_end() && reader_.peek() != '}') reader_.take_code();
    const std::string_view name =
        reader_.source().substr(name_begin, reader_.offset() - name_begin);
    const CodePoints* const set = unicode_property(name);
    if (!reader_.take("}") || set == nullptr) reader_.refuse_from(begin, "this property");
    if (ignores_case_ && set != unicode_property("N") && set != unicode_property("Nd") &&
        set != unicode_property("Z") && set != unicode_property("P")) {
      reader_.refuse_from(begin, "a property without case");
    }
    return is_negated ? set->complement() : *set;
  }

  char32_t escaped(size_t begin) {
    constexpr std::array<std::pair<char, char32_t>, 7> kLetters = {
        {{'t', '\t'}, {'n', '\n'}, {'r', '\r'}, {'f', '\f'}, {'v', '\v'}, {'a', 7}, {'e', 27}}};
    for (const auto& [letter, code] : kLetters) {
      if (reader_.take(std::string(1, letter))) return code;
    }
    if (reader_.take("x{")) return hex(begin, 1, 8, "}");
    if (reader_.take("x")) {
      const char32_t code = hex(begin, 2, 2, "");
      if (code >= 128) reader_.refuse_from(begin, "a byte that is not ASCII");
      return code;
    }
    if (reader_.take("u")) return hex(begin, 4, 4, "");
    const char32_t code = reader_.take_code();
    if (code < 128 && std::isalnum(static_cast<int>(code))) {
      reader_.refuse_from(begin, "this escape");
    }
    return code;
  }

  char32_t hex(size_t begin, int least, int most, std::string_view end) {
    uint64_t code = 0;
    int count = 0;
    for (; count < most && std::isxdigit(static_cast<unsigned char>(reader_.peek())); ++count) {
      const char c = static_cast<char>(reader_.take_code());
      code = code * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (count < least || !reader_.take(end) || code > CodePoints::kLast ||
        (code >= 0xd800 && code < 0xe000)) {
      reader_.refuse_from(begin, "this code of a character");
    }
    return static_cast<char32_t>(code);
  }

  // Behind the [; with `&&`, what stands on both sides.
  CodePoints bracket(size_t begin) {
    if (++depth_ > kMaxDepth) reader_.refuse_from(begin, "more than 50 sets in each other");
    const bool is_negated = reader_.take("^");
    if (reader_.follows("]"))
      reader_.refuse_from(begin, "an empty set, or a set that begins with ]");
    CodePoints both = CodePoints::all();
    CodePoints members;
    while (!reader_.take("]")) {
      if (reader_.at_end()) reader_.refuse_from(begin, "a [ without its ]");
      if (reader_.take("&&")) {
        both = both.both(members);
        members = {};
      } else {
        members.add(member(begin));
      }
    }
    both = both.both(members);
    --depth_;
    return is_negated ? both.complement() : both;
  }

  CodePoints member(size_t begin) {
    if (reader_.follows("[:")) return bracket_class(begin);
    if (reader_.take("[")) return bracket(begin);
    if (reader_.follows("\\b")) reader_.refuse_from(begin, "\\b in a set");
    const size_t first_at = reader_.offset();
    const TakenSet first = one(begin);
    const bool is_range = reader_.peek() == '-' && reader_.peek(1) != ']' && reader_.peek(1) != 0 &&
                          !reader_.follows("-&&");
    if (!is_range) return first.is_literal ? closed(first.set, begin) : first.set;
    const bool is_hyphen =
        first.is_literal && first_at + 1 == reader_.offset() && first.code == '-';
    reader_.take("-");
    if (!first.is_literal || is_hyphen || reader_.follows("[")) {
      reader_.refuse_from(begin, "a - that is between no two characters");
    }
    const TakenSet last = one(begin);
    if (!last.is_literal || last.code < first.code) {
      reader_.refuse_from(begin, "a range that is none");
    }
    if (reader_.peek() == '-' && reader_.peek(1) != ']') {
      reader_.refuse_from(begin, "a - behind a range");
    }
    return closed(CodePoints{{first.code, last.code}}, begin);
  }

  CodePoints bracket_class(size_t begin) {
    reader_.take("[:");
    const bool is_negated = reader_.take("^");
    for (const auto& [name, set] : bracket_sets()) {
      if (!reader_.take(fmt::format("{}:]", name))) continue;
      if (ignores_case_) reader_.refuse_from(begin, "[:…:] without case");
      return is_negated ? set.complement() : set;
    }
    reader_.refuse_from(begin, "this [:…:]");
  }

  ExpressionReader& reader_;
  bool ignores_case_;
  int depth_ = 0;
};

}  // namespace

ExpressionReader::ExpressionReader(std::string_view source) : source_(source) {
  if (utf8::valid_prefix(source) < source.size()) {
    fail(ErrorCode::kUnsupported, "the expression is not UTF-8");
  }
}

bool ExpressionReader::take(std::string_view text) {
  if (!follows(text)) return false;
  at_ += text.size();
  return true;
}

char32_t ExpressionReader::take_code() {
  const utf8::Character character =
      utf8::decode(source_.data() + at_, source_.data() + source_.size());
  at_ += static_cast<size_t>(character.size);
  return character.code;
}

std::optional<int> ExpressionReader::take_number(int most) {
  if (!std::isdigit(static_cast<unsigned char>(peek()))) return std::nullopt;
  int number = 0;
  while (std::isdigit(static_cast<unsigned char>(peek()))) {
    number = number * 10 + (source_[at_++] - '0');
    if (number > most) refuse(fmt::format("a repetition of more than {}", most));
  }
  return number;
}

bool ExpressionReader::interval_follows() const {
  if (peek() != '{') return false;
  size_t at = at_ + 1, digits = 0;
  const auto skip_digits = [&] {
    while (at < source_.size() && std::isdigit(static_cast<unsigned char>(source_[at]))) {
      ++at, ++digits;
    }
  };
  skip_digits();
  if (at < source_.size() && source_[at] == ',') {
    ++at;
    skip_digits();
  }
  return digits > 0 && at < source_.size() && source_[at] == '}';
}

void ExpressionReader::refuse(const std::string& what) const {
  fail(ErrorCode::kUnsupported, "{} is not read: `{}`", what,
       source_.size() > 400 ? std::string(source_.substr(0, 400)) + "…" : std::string(source_));
}

void ExpressionReader::refuse_from(size_t begin, const std::string& what) const {
  std::string_view there = source_.substr(begin, 40);
  while (utf8::valid_prefix(there) < there.size()) there.remove_suffix(1);
  fail(ErrorCode::kUnsupported, "{} is not read: `{}`, at byte {} of `{}`", what, there, begin,
       source_.size() > 400 ? "…" : std::string(source_));
}

TakenSet take_set(ExpressionReader& reader, bool ignores_case) {
  return SetReader(reader, ignores_case).take();
}

}  // namespace skein::bpe
