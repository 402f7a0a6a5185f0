#include "skein/evaluate/requests/document_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "skein/base/error.h"
#include "skein/evaluate/requests/python_literal.h"
#include "skein/jinja/values/text.h"

namespace skein {

using jinja::Kind;
using jinja::Value;

namespace {

std::string stripped(std::string_view text) {
  return std::string(jinja::strip(text, jinja::Side::kBoth, nullptr));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string made;
  size_t begin = 0;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, begin)) {
    made.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  text = made.append(text, begin);
}

// Without "[...]" inside one line, the shortest of each.
std::string without_brackets(const std::string& text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '[') {
      const size_t end = text.find_first_of("]\n", at);
      if (end != text.npos && text[end] == ']') {
        at = end + 1;
        continue;
      }
      const size_t line = std::min(end, text.size());
      made.append(text, at, line - at);
      at = line;
      continue;
    }
    made += text[at++];
  }
  return made;
}

std::string hellaswag_text(std::string_view text) {
  std::string made = stripped(text);
  replace_all(made, " [title]", ". ");
  made = without_brackets(made);
  replace_all(made, "  ", " ");
  return made;
}

size_t blank_of(const std::string& sentence) {
  const size_t at = sentence.find('_');
  if (at == sentence.npos) {
    fail(ErrorCode::kInvalid, "the column 'sentence' has no blank (_) to fill: {}",
         sentence.substr(0, 80));
  }
  return at;
}

// The first character in lower case.
std::string uncapitalized(const std::string& text) {
  if (text.empty()) fail(ErrorCode::kInvalid, "a choice is empty; expected a sentence");
  const size_t first = jinja::offset_of(text, 1);
  return jinja::lower(text.substr(0, first)) + text.substr(first);
}

// The place of an answer, "A" to "D".
size_t letter_place(const std::string& letter) {
  if (letter.size() != 1 || letter[0] < 'A' || letter[0] > 'D')
    fail(ErrorCode::kInvalid, "the answer is '{}'; expected A, B, C or D", letter);
  return static_cast<size_t>(letter[0] - 'A');
}

std::vector<Value> race_problems(const Value& document) {
  const Value list = python_literal(text_column(document, "problems"), "the column 'problems'");
  if (!list.is(Kind::kSequence) || list.as_sequence().items.empty())
    fail(ErrorCode::kInvalid, "the column 'problems' is no list of problems");
  return list.as_sequence().items;
}

std::string race_answer(const Value& problem) {
  const std::vector<std::string> options = texts_column(problem, "options");
  const size_t place = letter_place(text_column(problem, "answer"));
  if (place >= options.size())
    fail(ErrorCode::kInvalid, "answer {} of {} options", place + 1, options.size());
  return options[place];
}

}  // namespace

const Value& column(const Value& document, std::string_view name) {
  const Value* found = document.is(Kind::kDict) ? document.as_dict().find(name) : nullptr;
  if (found == nullptr) fail(ErrorCode::kNotFound, "the document has no column '{}'", name);
  return *found;
}

const std::string& text_column(const Value& document, std::string_view name) {
  const Value& value = column(document, name);
  if (!value.is_string())
    fail(ErrorCode::kInvalid, "the column '{}' is a {}; expected text", name, type_name(value));
  return value.text();
}

std::vector<std::string> texts_column(const Value& document, std::string_view name) {
  const Value& value = column(document, name);
  std::vector<std::string> texts;
  const bool is_list = value.is(Kind::kSequence);
  for (size_t i = 0; is_list && i < value.as_sequence().items.size(); ++i) {
    const Value& item = value.as_sequence().items[i];
    if (item.is_string()) texts.push_back(item.text());
  }
  if (!is_list || texts.size() < value.as_sequence().items.size())
    fail(ErrorCode::kInvalid, "the column '{}' is no list of texts", name);
  return texts;
}

Value hellaswag_document(const Value& document) {
  auto made = std::make_shared<jinja::Dict>(document.as_dict());
  const std::string context =
      text_column(document, "ctx_a") + " " + jinja::capitalize(text_column(document, "ctx_b"));
  std::vector<Value> choices;
  for (const std::string& ending : texts_column(document, "endings"))
    choices.push_back(Value::string(hellaswag_text(ending)));
  const Value& label = column(document, "label");
  const Value gold =
      label.is_string() ? python_literal(stripped(label.text()), "the column 'label'") : label;
  if (!gold.is_integer()) fail(ErrorCode::kInvalid, "the column 'label' is no whole number");
  made->set(
      Value::string("query"),
      Value::string(hellaswag_text(text_column(document, "activity_label") + ": " + context)));
  made->set(Value::string("choices"), Value::list(std::move(choices)));
  made->set(Value::string("gold"), gold);
  return Value::of(Kind::kDict, std::move(made));
}

Value winogrande_text(const Value& document) {
  const std::string& answer = text_column(document, "answer");
  if (answer != "1" && answer != "2")
    fail(ErrorCode::kInvalid, "the column 'answer' is '{}'; expected 1 or 2", answer);
  return Value::integer(answer == "1" ? 0 : 1);
}

Value winogrande_target(const Value& document) {
  const std::string& sentence = text_column(document, "sentence");
  return Value::string(stripped(std::string_view(sentence).substr(blank_of(sentence) + 1)));
}

Value winogrande_choice(const Value& document) {
  const std::string& sentence = text_column(document, "sentence");
  const std::string before = sentence.substr(0, blank_of(sentence));
  return Value::list({Value::string(before + text_column(document, "option1")),
                      Value::string(before + text_column(document, "option2"))});
}

Value copa_text(const Value& document) {
  const std::string& question = text_column(document, "question");
  if (question != "cause" && question != "effect")
    fail(ErrorCode::kInvalid, "the column 'question' is '{}'; expected cause or effect", question);
  std::string premise = stripped(text_column(document, "premise"));
  const int64_t length = jinja::count_characters(premise);
  premise.resize(jinja::offset_of(premise, std::max<int64_t>(length - 1, 0)));
  return Value::string(premise + (question == "cause" ? " because" : " therefore"));
}

Value copa_target(const Value& document) {
  const bool first = equal(column(document, "label"), Value::integer(0));
  return Value::string(" " + uncapitalized(text_column(document, first ? "choice1" : "choice2")));
}

Value copa_choice(const Value& document) {
  return Value::list({Value::string(" " + uncapitalized(text_column(document, "choice1"))),
                      Value::string(" " + uncapitalized(text_column(document, "choice2")))});
}

Value race_choice(const Value& document) {
  constexpr size_t kNumOptions = 4;
  const std::vector<std::string> options = texts_column(race_problems(document).back(), "options");
  if (options.size() < kNumOptions)
    fail(ErrorCode::kInvalid, "a problem has {} options; expected 4", options.size());
  std::vector<Value> choices;
  for (size_t i = 0; i < kNumOptions; ++i) choices.push_back(Value::string(options[i]));
  return Value::list(std::move(choices));
}

Value race_text(const Value& document) {
  constexpr std::string_view kBlank = "  _  .";
  std::string text = "Article: " + text_column(document, "article") + "\n\n";
  const std::vector<Value> problems = race_problems(document);
  for (size_t i = 0; i + 1 < problems.size(); ++i) {
    const std::string& question = text_column(problems[i], "question");
    if (question.ends_with(kBlank)) {
      text += question.substr(0, question.size() - (kBlank.size() - 1));
      text += race_answer(problems[i]) + "\n";
    } else {
      text += "Question: " + question + "\nAnswer: " + race_answer(problems[i]) + "\n";
    }
  }
  return Value::string(text + text_column(problems.back(), "question"));
}

Value race_target(const Value& document) {
  const std::vector<Value> problems = race_problems(document);
  return Value::integer(static_cast<int64_t>(letter_place(text_column(problems.back(), "answer"))));
}

}  // namespace skein
