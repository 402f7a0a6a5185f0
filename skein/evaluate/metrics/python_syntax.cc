#include "skein/evaluate/metrics/python_syntax.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/utf8.h"
#include "skein/evaluate/metrics/python_syntax_parser.h"

namespace skein {
namespace {

constexpr size_t kMaxSource = 64 << 10;
constexpr int kMaxDepth = 100;
constexpr int64_t kMaxRepeat = 65'535;          // PCRE2's
constexpr int64_t kNoLimit = int64_t{1} << 32;  // of a width or a repeat

constexpr std::string_view kWord = "[\\p{L}\\p{N}_]", kAsciiWord = "[0-9A-Za-z_]";

int64_t times(int64_t width, int64_t count) {
  if (width == 0 || count == 0) return 0;
  return width >= kNoLimit / count ? kNoLimit : std::min(kNoLimit, width * count);
}

std::string boundary(bool inside, std::string_view word) {
  if (inside) {  // Python finds none in an empty text
    return fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0})(?!\\A\\z))", word);
  }
  return fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word);
}

}  // namespace

int PythonSyntax::group_named(std::string_view name) const {
  for (const auto& [other, number] : names) {
    if (other == name) return number;
  }
  return -1;
}

std::string quoted_regex(std::string_view source) {
  constexpr size_t kShown = 200;
  if (source.size() <= kShown) return fmt::format("`{}`", source);
  return fmt::format("`{}...`", source.substr(0, utf8::character_start(source, kShown)));
}

PythonSyntax parse_python_regex(std::string_view source) {
  return PythonSyntaxParser(source).parse();
}

PythonSyntaxParser::PythonSyntaxParser(std::string_view source) : source_(source) {
  if (source.size() > kMaxSource) {
    fail(ErrorCode::kUnsupported, "the expression {} has {} bytes: expected at most {}",
         quoted_regex(source), source.size(), kMaxSource);
  }
  const char* const end = source.data() + source.size();
  for (const char* at = source.data(); at < end;) {
    const utf8::Character character = utf8::decode(at, end);
    if (character.code == utf8::kInvalid) refuse("it is not UTF-8");
    codes_.push_back(character.code);
    at += character.size;
  }
}

void PythonSyntaxParser::refuse(const std::string& why) const {
  fail(ErrorCode::kInvalid, "the expression {} is not one of Python's: at character {}: {}",
       quoted_regex(source_), at_, why);
}

void PythonSyntaxParser::refuse_unsupported(const std::string& what) const {
  fail(ErrorCode::kUnsupported, "the expression {}: at character {}: {} is not supported",
       quoted_regex(source_), at_, what);
}

char32_t PythonSyntaxParser::take(const char* expected) {
  if (at_ >= codes_.size()) refuse(fmt::format("it ends here: expected {}", expected));
  return codes_[at_++];
}

PythonSyntax PythonSyntaxParser::parse() {
  RegexFlags flags;
  result_.pattern = alternatives(flags, 0).text;
  if (next() == U')') refuse("a ) without a (");
  result_.num_groups = static_cast<int>(groups_.size());
  if (most_referenced_ > result_.num_groups) {
    refuse(fmt::format("it has no group {}", most_referenced_));
  }
  return std::move(result_);
}

RegexPart PythonSyntaxParser::alternatives(RegexFlags& flags, int depth) {
  if (depth > kMaxDepth) refuse_unsupported(fmt::format("more than {} groups deep", kMaxDepth));
  RegexPart all = sequence(flags, depth, depth == 0);
  while (match(U'|')) {
    const RegexPart other = sequence(flags, depth, false);
    all.text += '|' + other.text;
    all.has_choice = true;
    all.least = std::min(all.least, other.least);
    all.most = std::max(all.most, other.most);
  }
  return all;
}

RegexPart PythonSyntaxParser::sequence(RegexFlags& flags, int depth, bool is_first) {
  RegexPart all, last;
  const auto add_last = [&] {
    all.text += last.text;
    all.has_choice = all.has_choice || last.has_choice;
    all.least = std::min(kNoLimit, all.least + last.least);
    all.most = std::min(kNoLimit, all.most + last.most);
  };
  while (next() != kEnd && next() != U'|' && next() != U')') {
    if (skip_verbose(flags)) continue;
    const char32_t code = codes_[at_++];
    int64_t least = 0, most = 0;
    if (repeat_range(code, least, most)) {
      repeat(last, least, most);
      continue;
    }
    if (code == U'(' && global_flags(flags)) {
      if (!is_first || last.kind != Kind::kNothing) refuse("flags after the start");
      continue;
    }
    RegexPart part = item(code, flags, depth);
    if (part.kind == Kind::kNothing) continue;  // a comment
    add_last();
    last = std::move(part);
  }
  add_last();
  return all;
}

bool PythonSyntaxParser::skip_verbose(const RegexFlags& flags) {
  if (!flags.verbose) return false;
  const char32_t code = next();
  if (code == U' ' || (code >= U'\t' && code <= U'\r')) {
    ++at_;
    return true;
  }
  if (code != U'#') return false;
  while (next() != kEnd && codes_[at_++] != U'\n') {
  }
  return true;
}

RegexPart PythonSyntaxParser::item(char32_t code, const RegexFlags& flags, int depth) {
  switch (code) {
    case U'(':
      return group(flags, depth);
    case U'[':
      return set(flags);
    case U'\\':
      return escape(flags);
    case U'.':
      return {flags.dot_all ? "(?s:.)" : "[^\\n]", Kind::kOther, 1, 1};
    case U'^':
      return {flags.multi_line ? "(?<![^\\n])" : "\\A", Kind::kAnchor};
    case U'$':
      return {flags.multi_line ? "(?![^\\n])" : "\\Z", Kind::kAnchor};
    default:
      return {regex_literal(code, flags), Kind::kOther, 1, 1};
  }
}

RegexPart PythonSyntaxParser::anchor(char32_t code, const RegexFlags& flags) {
  const std::string_view word = flags.ascii ? kAsciiWord : kWord;
  switch (code) {
    case U'A':
      return {"\\A", Kind::kAnchor};
    case U'Z':
      return {"\\z", Kind::kAnchor};
    case U'b':
      return {boundary(false, word), Kind::kAnchor};
    case U'B':
      return {boundary(true, word), Kind::kAnchor};
    default:
      return {};
  }
}

int64_t PythonSyntaxParser::digits(bool& any) {
  int64_t number = 0;
  for (any = false; next() >= U'0' && next() <= U'9'; any = true) {
    number = std::min(kNoLimit, number * 10 + static_cast<int64_t>(codes_[at_++] - U'0'));
  }
  return number;
}

// Whether `code`, which was just read, begins a repeat. A { that begins none is a literal.
bool PythonSyntaxParser::repeat_range(char32_t code, int64_t& least, int64_t& most) {
  least = code == U'+' ? 1 : 0;
  most = code == U'?' ? 1 : kNoLimit;
  if (code == U'*' || code == U'+' || code == U'?') return true;
  if (code != U'{' || next() == U'}') return false;
  const size_t begin = at_;
  bool has_least = false, has_most = false;
  least = digits(has_least);
  if (match(U',')) {
    most = digits(has_most);
    if (!has_most) most = kNoLimit;
  } else {
    most = has_least ? least : kNoLimit;
    has_most = has_least;
  }
  if (!match(U'}')) {
    at_ = begin;
    return false;
  }
  if (least > kMaxRepeat || (has_most && most > kMaxRepeat)) {
    refuse_unsupported(fmt::format("more than {} repeats", kMaxRepeat));
  }
  if (most < least) refuse("a repeat whose first number is the larger");
  return true;
}

void PythonSyntaxParser::repeat(RegexPart& part, int64_t least, int64_t most) {
  if (part.kind == Kind::kNothing || part.kind == Kind::kAnchor) refuse("nothing to repeat");
  if (part.kind == Kind::kRepeat) refuse("two repeats in a row");
  if (part.kind == Kind::kAssertion) part.text = "(?:" + part.text + ")";
  part.text +=
      most == kNoLimit ? fmt::format("{{{},}}", least) : fmt::format("{{{},{}}}", least, most);
  // Python does not repeat after an iteration that matched nothing; PCRE2 repeats up to `most`.
  if (part.has_choice && part.least == 0 && part.most > 0 && most > 1 && most != kNoLimit &&
      most > least) {
    refuse_unsupported("a repeat to a number, of a group that may match nothing,");
  }
  if (match(U'?')) {
    part.text += '?';
    part.has_choice = true;
  } else if (match(U'+')) {
    part.text = "(?>" + part.text + ")";  // PCRE2 10.42's own *+ loses groups when compiled
  }
  part.kind = Kind::kRepeat;
  part.least = times(part.least, least);
  part.most = times(part.most, most);
}

}  // namespace skein
