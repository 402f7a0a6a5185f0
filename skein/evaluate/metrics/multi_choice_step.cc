// The filter multi_choice_regex: which letter of a choice an answer names.
//
//   1. what the expression finds
//   2. else the first text of a choice in the answer: "(A)" of the first choice
//   3. else a letter after a colon
//   4. else the fallback
#include <utf8proc.h>

#include <algorithm>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/text/utf8.h"
#include "skein/evaluate/metrics/filter_steps.h"
#include "skein/jinja/values/text.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

struct MultiChoice {
  explicit MultiChoice(const Options& options)
      : regex(options.text("regex_pattern", R"(#### (\-?[0-9\.\,]+))")),
        select(options.integer("group_select", 0)),
        ignore_case(options.truth("ignore_case")),
        ignore_punctuation(options.truth("ignore_punctuation")) {
    for (const std::string& ignored : options.texts("regexes_to_ignore")) {
      to_ignore.emplace_back(ignored);
    }
    const Value* const found = options.find("fallback");
    fallback = found == nullptr ? Value::string("[invalid]") : *found;
  }

  bool needs_text() const { return ignore_case || ignore_punctuation || !to_ignore.empty(); }

  PythonRegex regex;
  int64_t select;
  bool ignore_case, ignore_punctuation;
  std::vector<PythonRegex> to_ignore;
  Value fallback;
};

bool is_punctuation(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return true;
    default:
      return false;
  }
}

std::string simplified(std::string text, const MultiChoice& filter) {
  for (const PythonRegex& ignored : filter.to_ignore) text = ignored.substitute("", text);
  if (filter.ignore_case) text = jinja::lower(text);
  if (!filter.ignore_punctuation) return text;
  std::string kept;
  for (const std::string_view character : jinja::Characters(text)) {
    if (!is_punctuation(jinja::code_of(character))) kept += character;
  }
  return kept;
}

// The match that is selected, "" without one.
std::string found_in(const PythonRegex& regex, std::string_view text, int64_t select) {
  const auto matches = regex.find_all(text);
  if (matches.empty()) return "";
  bool is_all_empty = false;
  const std::string match = selected_match(matches, select, is_all_empty);
  return std::string(jinja::strip(match, jinja::Side::kBoth, nullptr));
}

// The choices of one document.
struct Choices {
  Choices(const Value& document, const MultiChoice& filter) {
    const Value* const choices =
        document.is(Kind::kDict) ? document.as_dict().find("choices") : nullptr;
    if (choices == nullptr) {
      fail(ErrorCode::kInvalid, "the document has no column choices: expected a list of texts");
    }
    char32_t letter = U'A';
    for (const Value& choice : answers_of(*choices)) {
      if (!choice.is_string()) {
        fail(ErrorCode::kInvalid, "a choice is a {}: expected a text", jinja::type_name(choice));
      }
      texts.push_back(simplified(
          std::string(jinja::strip(choice.text(), jinja::Side::kBoth, nullptr)), filter));
      utf8::append(letters.emplace_back(), letter++);
    }
    std::vector<std::string> escaped;
    for (const std::string& text : texts) escaped.push_back(escape_python_regex(text));
    std::stable_sort(escaped.begin(), escaped.end(), [](const auto& a, const auto& b) {
      return utf8::num_characters(a) > utf8::num_characters(b);
    });
    any_text = std::make_unique<PythonRegex>(fmt::format("{}", fmt::join(escaped, "|")));
    any_letter = std::make_unique<PythonRegex>(fmt::format(":[\\s]*({})", fmt::join(letters, "|")));
  }

  // "(B)" of the second choice, the last of those that are the same; else `match`.
  static std::string letter_of(const std::string& match, const std::vector<std::string>& keys,
                               const std::vector<std::string>& letters) {
    for (size_t i = keys.size(); i-- > 0;) {
      if (!match.empty() && keys[i] == match) return "(" + letters[i] + ")";
    }
    return match;
  }

  std::vector<std::string> texts, letters;
  std::unique_ptr<PythonRegex> any_text, any_letter;
};

}  // namespace

FilterStep multi_choice_step(const Options& options) {
  options.allow({"regex_pattern", "group_select", "fallback", "ignore_case", "ignore_punctuation",
                 "regexes_to_ignore"});
  const auto filter = std::make_shared<MultiChoice>(options);
  return [filter](const Value& answers, const FilteredDocument& of) {
    const Choices choices(of.document, *filter);
    std::vector<Value> filtered;
    for (const Value& answer : answers_of(answers)) {
      const std::string text = answer.is_string() ? answer.text() : "";
      std::string match = found_in(filter->regex, text, filter->select);
      if (match.empty() && !answer.is_string() && filter->needs_text()) {
        fail(ErrorCode::kInvalid, "an answer is a {}: expected a text", jinja::type_name(answer));
      }
      if (match.empty()) {
        match = found_in(*choices.any_text, simplified(text, *filter), filter->select);
        match = Choices::letter_of(match, choices.texts, choices.letters);
      }
      if (match.empty()) {
        match = found_in(*choices.any_letter, text, filter->select);
        match = Choices::letter_of(match, choices.letters, choices.letters);
      }
      filtered.push_back(match.empty() ? filter->fallback : Value::string(std::move(match)));
    }
    return Value::list(std::move(filtered));
  };
}

}  // namespace skein
