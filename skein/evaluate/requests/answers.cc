#include "skein/evaluate/requests/answers.h"

#include <fmt/format.h>

#include "skein/base/error.h"
#include "skein/jinja/values/printed.h"

namespace skein {

using jinja::Kind;
using jinja::Value;

bool is_given(const Value& field) { return !field.is_undefined() && !field.is(Kind::kNone); }

bool is_list(const Value& value) {
  return value.is(Kind::kSequence) && value.as_sequence().flavor == jinja::Flavor::kList;
}

bool is_whole_number(const Value& value) {
  return value.is_integer() || value.is(Kind::kBigInteger);
}

std::string shown(const Value& value) {
  jinja::Budget budget{jinja::Limits{}};
  return printed(value, budget);
}

std::vector<std::string> choices_of(const Value& value) {
  const bool is_row =
      value.is(Kind::kSequence) && value.as_sequence().flavor <= jinja::Flavor::kTuple;
  if (!is_row) {
    fail(ErrorCode::kInvalid, "doc_to_choice gives a {}; expected a list of texts",
         type_name(value));
  }
  std::vector<std::string> choices;
  for (const Value& choice : value.as_sequence().items) {
    if (!choice.is_string()) {
      fail(ErrorCode::kInvalid,
           "choice {} of doc_to_choice is {} ({}); expected text (in YAML, in quotes)",
           choices.size(), shown(choice), type_name(choice));
    }
    choices.push_back(choice.text());
  }
  return choices;
}

const std::string& choice_at(const std::vector<std::string>& choices, const Value& place) {
  if (!place.is_integer())
    fail(ErrorCode::kInvalid, "{} is no place of a choice; expected a whole number", shown(place));
  const auto size = static_cast<int64_t>(choices.size());
  const int64_t at = place.as_integer() < 0 ? place.as_integer() + size : place.as_integer();
  if (at < 0 || at >= size) {
    fail(ErrorCode::kInvalid, "the answer is choice {} of {} (from 0)", place.as_integer(), size);
  }
  return choices[static_cast<size_t>(at)];
}

std::optional<std::string> answer_of(const Value& target, const std::vector<std::string>& choices) {
  if (target.is(Kind::kNone) || (target.is_string() && target.text().empty())) return std::nullopt;
  if (is_whole_number(target) && !choices.empty()) return choice_at(choices, target);
  if (is_list(target) && target.as_sequence().items.empty())
    fail(ErrorCode::kInvalid, "doc_to_target gives an empty list; expected an answer");
  const Value& answer = is_list(target) ? target.as_sequence().items[0] : target;
  if (answer.is_string()) return answer.text();
  fail(ErrorCode::kInvalid, "doc_to_target gives {} ({}) as an example's answer; expected text{}",
       shown(answer), type_name(answer),
       is_whole_number(answer) ? ", or doc_to_choice, which its number is a place of" : "");
}

}  // namespace skein
