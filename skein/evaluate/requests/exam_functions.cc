// Functions of tasks that write a question with its options: logiqa, medqa, pubmedqa, mmlu_pro.
#include <fmt/format.h>

#include "skein/base/error.h"
#include "skein/evaluate/requests/document_functions.h"
#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/printed.h"
#include "skein/jinja/values/text.h"

namespace skein {

using jinja::Value;

namespace {

std::string stripped(std::string_view text) {
  return std::string(jinja::strip(text, jinja::Side::kBoth, nullptr));
}

std::string without(std::string text, std::string_view part, std::string_view instead) {
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + instead.size()))
    text.replace(at, part.size(), instead);
  return text;
}

}  // namespace

Value logiqa_text(const Value& document) {
  std::string text = "Passage: " + text_column(document, "context") +
                     "\nQuestion: " + text_column(document, "question") + "\nChoices:\n";
  const std::vector<std::string> options = texts_column(document, "options");
  for (size_t i = 0; i < options.size() && i < 4; ++i)
    text += fmt::format("{}. {}\n", static_cast<char>('A' + i), options[i]);
  return Value::string(text + "Answer:");
}

Value logiqa_target(const Value& document) {
  const std::string label = stripped(text_column(document, "label"));
  if (label.size() != 1 || label[0] < 'a' || label[0] > 'd')
    fail(ErrorCode::kInvalid, "the column 'label' is '{}'; expected a, b, c or d", label);
  return Value::integer(label[0] - 'a');
}

Value medqa_text(const Value& document) {
  jinja::Budget budget{jinja::Limits{}};
  const auto shown = [&](std::string_view name) { return printed(column(document, name), budget); };
  std::string text = fmt::format("Question: {}\n", shown("sent1"));
  for (int i = 0; i < 4; ++i) {
    text += fmt::format("{}. {}\n", static_cast<char>('A' + i), shown(fmt::format("ending{}", i)));
  }
  return Value::string(text + "Answer:");
}

Value medqa_target(const Value& document) { return column(document, "label"); }

Value pubmedqa_text(const Value& document) {
  std::string contexts;
  for (const std::string& context : texts_column(document, "CONTEXTS"))
    contexts += (contexts.empty() ? "" : "\n") + context;
  jinja::Budget budget{jinja::Limits{}};
  return Value::string(fmt::format("Abstract: {}\nQuestion: {}\nAnswer:", contexts,
                                   printed(column(document, "QUESTION"), budget)));
}

Value mmlu_pro_text(const Value& document) {
  constexpr size_t kMostOptions = 10;
  std::string text = "Question:\n" + text_column(document, "question") + "\nOptions:\n";
  const std::vector<std::string> options = texts_column(document, "options");
  for (size_t i = 0; i < options.size() && i < kMostOptions; ++i)
    text += fmt::format("{}. {}\n", static_cast<char>('A' + i), stripped(options[i]));
  return Value::string(text + "Answer: Let's think step by step.");
}

Value mmlu_pro_target(const Value& document) {
  return Value::string(
      without(text_column(document, "cot_content"), "A: Let's think step by step. ", ""));
}

}  // namespace skein
