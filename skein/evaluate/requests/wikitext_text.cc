// The text of a page of WikiText before it was cut into tokens: without the blanks before
// punctuation and inside brackets and quotes.
#include <string>
#include <string_view>
#include <utility>

#include "skein/evaluate/requests/document_functions.h"
#include "skein/jinja/values/text.h"

namespace skein {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

constexpr Replacement kFirst[] = {{"s '", "s'"}};
constexpr Replacement kPunctuation[] = {
    {" @-@ ", "-"}, {" @,@ ", ","}, {" @.@ ", "."}, {" : ", ": "}, {" ; ", "; "},
    {" . ", ". "},  {" ! ", "! "},  {" ? ", "? "},  {" , ", ", "},
};
constexpr Replacement kRest[] = {
    {"= = = =", "===="}, {"= = =", "==="}, {"= =", "=="},  {" \u00b0 ", "\u00b0"},
    {" \n", "\n"},       {"\n ", "\n"},    {" N ", " 1 "}, {" 's", "'s"},
};

std::string replaced(const std::string& text, const Replacement& replacement) {
  std::string made;
  size_t begin = 0;
  const auto [from, to] = replacement;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, begin)) {
    made.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  return made.append(text, begin);
}

// "/' 5/" becomes "/'[0-9]/": the harness writes its pattern's text there.
std::string with_marked_years(const std::string& text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const bool found = text.compare(at, 3, "/' ") == 0 && at + 4 < text.size() &&
                       text[at + 3] >= '0' && text[at + 3] <= '9' && text[at + 4] == '/';
    made += found ? "/'[0-9]/" : std::string(1, text[at]);
    at += found ? 5 : 1;
  }
  return made;
}

// Text between `open` and the next `close` without the blanks at its ends.
std::string with_tight(const std::string& text, char open, char close) {
  std::string made;
  size_t begin = 0;
  for (;;) {
    const size_t at = text.find(open, begin);
    const size_t end = at == text.npos ? text.npos : text.find(close, at + 1);
    if (end == text.npos) return made.append(text, begin);
    made.append(text, begin, at + 1 - begin);
    made += jinja::strip(std::string_view(text).substr(at + 1, end - at - 1), jinja::Side::kBoth,
                         nullptr);
    made += close;
    begin = end + 1;
  }
}

}  // namespace

jinja::Value wikitext_target(const jinja::Value& document) {
  std::string text = text_column(document, "page");
  for (const Replacement& replacement : kFirst) text = replaced(text, replacement);
  text = with_marked_years(text);
  for (const Replacement& replacement : kPunctuation) text = replaced(text, replacement);
  constexpr std::pair<char, char> kPairs[] = {
      {'(', ')'}, {'[', ']'}, {'{', '}'}, {'"', '"'}, {'\'', '\''}};
  for (const auto& pair : kPairs) text = with_tight(text, pair.first, pair.second);
  for (const Replacement& replacement : kRest) text = replaced(text, replacement);
  return jinja::Value::string(std::move(text));
}

}  // namespace skein
