#include "skein/bpe/expression/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "tests/error_of.h"

namespace skein::bpe {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

// The matches and what is between them, but for what is empty.
std::vector<std::string> pieces(std::string_view source, const std::string& text) {
  const Expression expression(source);
  Matcher matcher;
  std::string classes;
  std::vector<Span> found;
  expression.classify(text, classes);
  matcher.find_all(expression, classes, found);
  std::vector<size_t> places;  // [character]: its first byte
  for (size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<uint8_t>(text[at]) & 0xc0) != 0x80) places.push_back(at);
  }
  places.push_back(text.size());
  std::vector<std::string> all;
  size_t begin = 0;
  const auto keep = [&](size_t end) {
    if (end > begin) all.push_back(text.substr(places[begin], places[end] - places[begin]));
    begin = end;
  };
  for (const Span& match : found) keep(match.begin), keep(match.end);
  keep(places.size() - 1);
  return all;
}

// As `tokenizers` 0.23.3 has them.
TEST(Expression, FindsWhatOnigurumaFinds) {
  EXPECT_THAT(pieces(R"(\b)", "ab é日1_ -x"), ElementsAre("ab", " ", "é日1_", " -", "x"));
  EXPECT_THAT(pieces(R"((?i:'s|'ll))", "it'ſ'LL"), ElementsAre("it", "'ſ", "'LL"));
  EXPECT_THAT(pieces("(?i:k)", "kK\u212a"), ElementsAre("k", "K", "\u212a"));
  EXPECT_THAT(pieces("(?i)a|B", "AbB"), ElementsAre("A", "b", "B"));
  EXPECT_THAT(pieces("x(?i)a|b", "xA B xB"), ElementsAre("xA", " B ", "xB"));
  EXPECT_THAT(pieces("^", "a\nb\n"), ElementsAre("a\n", "b\n"));
  EXPECT_THAT(pieces("$", "a\nb\n"), ElementsAre("a", "\nb", "\n"));
  EXPECT_THAT(pieces(R"(\Z)", "a\nb\n"), ElementsAre("a\nb", "\n"));
  EXPECT_THAT(pieces("a.b", "a\nb a\rb"), ElementsAre("a\nb ", "a\rb"));
  EXPECT_THAT(pieces("a*+a", "aaa"), ElementsAre("aaa"));
  EXPECT_THAT(pieces("a{,2}", "aaab"), ElementsAre("aa", "a", "b"));
  EXPECT_THAT(pieces("a{", "aa{"), ElementsAre("a", "a{"));
  EXPECT_THAT(pieces("x*", "axxb"), ElementsAre("a", "xx", "b"));
  EXPECT_THAT(pieces("[a-c&&b-d]+", "abcd"), ElementsAre("a", "bc", "d"));
  EXPECT_THAT(pieces("[^a-z&&[^aeiou]]+", "hello"), ElementsAre("h", "e", "ll", "o"));
  EXPECT_THAT(pieces(R"([\p{L}&&[^\p{Han}]]+)", "ab日本c"), ElementsAre("ab", "日本", "c"));
  EXPECT_THAT(pieces(R"((?<=\s)\S+)", "a bc d"), ElementsAre("a ", "bc", " ", "d"));
  EXPECT_THAT(pieces("[[:punct:]]", "a+b-c"), ElementsAre("a", "+", "b", "-", "c"));
  EXPECT_THAT(pieces(R"(\w+)", "a²b"), ElementsAre("a²b"));
  EXPECT_THAT(pieces(R"([\w]+)", "a²b"), ElementsAre("a", "²", "b"));  // a quirk of Oniguruma
  EXPECT_THAT(pieces(R"(.[^a-z]{,2}(?:b)?+\P{L})", "s\u00a0\u2028k  "),
              ElementsAre("s\u00a0\u2028", "k  "));  // PCRE2 10.42 alone finds nothing
}

TEST(Expression, RefusesByNameWhatMayMeanSomethingElse) {
  const auto refusal = [](const char* source) { return error_of([&] { Expression{source}; }); };
  EXPECT_THAT(refusal(R"((a)\1)"), HasSubstr(R"(this escape is not read: `\1`, at byte 3)"));
  EXPECT_THAT(refusal("a{2,3}+"), HasSubstr("a repetition of a repetition"));
  EXPECT_THAT(refusal("(?:a|)*b"), HasSubstr("a repeated group that may match nothing"));
  EXPECT_THAT(refusal("(?i:ss)"), HasSubstr("that one character may stand for"));
  EXPECT_THAT(refusal("(?i:é)"), HasSubstr("not ASCII"));
  EXPECT_THAT(refusal(R"(\p{Klingon})"), HasSubstr("this property"));
  EXPECT_THAT(refusal("(?x: a)"), HasSubstr("a group of this kind"));
  EXPECT_THAT(refusal("[a-"), HasSubstr("a [ without its ]"));
  EXPECT_THAT(refusal("(?<!a+)b"), HasSubstr("is not read"));
  EXPECT_THAT(refusal((std::string(200, '(') + std::string(200, ')')).c_str()),
              HasSubstr("more than 100 groups"));
  EXPECT_THAT(refusal("((a{1000}){1000}){1000}"), HasSubstr("too large"));
}

TEST(Expression, GivesUpByNameWhereMatchingTakesTooLong) {
  EXPECT_THAT(error_of([] { pieces("(a+)+[bc]", std::string(60, 'a')); }),
              HasSubstr("`(a+)+[bc]` cannot be matched"));
}

TEST(Expression, OfOneLongWordNeitherGivesUpNorOverflows) {
  EXPECT_EQ(
      pieces(R"([\p{Lu}\p{M}]*[\p{Ll}\p{M}]+|[\p{Lu}\p{M}]+)", std::string(300000, 'A')).size(),
      1u);
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "abc";
  EXPECT_EQ(pieces("(?:ab|c)+", text).size(), 1u);
}

}  // namespace
}  // namespace skein::bpe
