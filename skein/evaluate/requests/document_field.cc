#include "skein/evaluate/requests/document_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "skein/base/error.h"
#include "skein/evaluate/requests/document_functions.h"
#include "skein/evaluate/requests/python_literal.h"
#include "skein/evaluate/requests/task_filters.h"
#include "skein/jinja/values/text.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

// The environment in which the harness renders.
jinja::Syntax task_syntax() {
  return {.trim_blocks = false,
          .lstrip_blocks = false,
          .keep_trailing_newline = true,
          .filters = task_filters()};
}

jinja::Template template_of(const std::string& source, const std::string& key,
                            const std::string& task) {
  try {
    return jinja::Template(source, key, task_syntax());
  } catch (const Error& error) {
    fail(error.code(), "task {}: {}", task, error.what());
  }
}

std::string rendered(const jinja::Template& source, const Value& document) {
  jinja::RenderOptions options;
  options.strict_undefined = true;
  return source.render(document, options).text;
}

bool is_list(const Value& value) {
  return value.is(Kind::kSequence) && value.as_sequence().flavor == jinja::Flavor::kList;
}

// str.isdigit of Python.
bool is_all_digits(const std::string& text) {
  for (const std::string_view character : jinja::Characters(text)) {
    if (!jinja::is_digit(jinja::code_of(character))) return false;
  }
  return !text.empty();
}

bool fits(const Value& written, DocumentField::Role role) {
  if (written.is_string() || written.is(Kind::kCallable)) return true;
  switch (role) {
    case DocumentField::Role::kText:
      return written.is_integer();
    case DocumentField::Role::kTarget:
      return written.is_integer() || is_list(written);
    case DocumentField::Role::kChoices:
      return is_list(written) || written.is(Kind::kDict);
  }
  return false;
}

constexpr std::string_view kExpected[] = {
    "the name of a column, a template, a number or a function",
    "the name of a column, a template, a number, a list or a function",
    "the name of a column, a template, a list, a dict or a function"};

// Why `text` of a template is no value, with the field's name.
Value literal(const std::string& text, const std::string& key) {
  return python_literal(text, key + ": the text of its template");
}

}  // namespace

DocumentField::DocumentField(const Value& written, Role role, const std::string& key,
                             const FieldScope& scope)
    : written_(written), role_(role), key_(key), has_choices_(scope.has_choices) {
  if (!fits(written, role)) {
    const bool is_absent = written.is_undefined() || written.is(Kind::kNone);
    fail(ErrorCode::kInvalid, "task {}: {} is {}; expected {}", scope.task, key,
         is_absent ? "absent" : "a " + type_name(written), kExpected[static_cast<size_t>(role)]);
  }
  if (written.is(Kind::kCallable)) function_ = document_function(written, scope.task, key);
  if (!written.is_string()) return;
  const auto& columns = scope.columns;
  is_column_ = std::find(columns.begin(), columns.end(), written.text()) != columns.end();
  if (!is_column_) template_ = template_of(written.text(), key, scope.task);
}

Value DocumentField::of(const Value& document) const {
  if (function_) {
    try {
      return function_(document);
    } catch (const Error& error) {
      fail(error.code(), "{}: {}", key_, error.what());
    }
  }
  if (is_column_) return column(document, written_.text());
  if (template_) return value_of_text(rendered(*template_, document));
  if (!written_.is(Kind::kDict)) return written_;
  std::vector<Value> values;
  for (const auto& entry : written_.as_dict().entries) values.push_back(entry.second);
  return Value::list(std::move(values));
}

Value DocumentField::value_of_text(const std::string& text) const {
  if (role_ == Role::kChoices) return literal(text, key_);
  if (has_choices_ && is_all_digits(text)) return literal(text, key_);
  if (role_ == Role::kText || text.size() < 2 || text.front() != '[' || text.back() != ']')
    return Value::string(text);
  try {
    return literal(text, key_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalid) throw;
    return Value::string(text);  // as the harness: an answer may begin and end with brackets
  }
}

PromptField::PromptField(const Value& written, const std::string& key, const std::string& task)
    : key_(key) {
  if (written.is_undefined() || written.is(Kind::kNone)) return;
  if (written.is(Kind::kCallable)) refuse_function(written, task, key);
  if (!written.is_string()) {
    fail(ErrorCode::kInvalid, "task {}: {} is a {}; expected text", task, key, type_name(written));
  }
  written_ = written.text();
  if (!written_.empty()) template_ = template_of(written_, key, task);
}

std::string PromptField::of(const Value& document) const {
  if (!template_) return "";
  const Value* found = document.as_dict().find(written_);
  if (found == nullptr) return rendered(*template_, document);
  if (found->is(Kind::kNone)) return "";
  if (!found->is_string()) {
    fail(ErrorCode::kInvalid, "{}: the column '{}' is a {}; expected text", key_, written_,
         type_name(*found));
  }
  return found->text();
}

}  // namespace skein
