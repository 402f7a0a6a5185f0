// Fields of a task that are computed from a document: doc_to_text, doc_to_target, doc_to_choice.
//
//   a name of a column   the column's value
//   other text           a template: undefined names are errors, the last line end stays, no blanks
//                        are trimmed
//   a number             doc_to_text, doc_to_target: itself
//   a list, a dict       doc_to_target: the list; doc_to_choice: the list, or the dict's values
//   !function            known_functions.h
//
// A template's text becomes
//   doc_to_text      the number that it spells, if the task has doc_to_choice and it is all digits
//   doc_to_target    the same; or the list that it spells ("[...]"), if Python reads it
//   doc_to_choice    the literal of Python that it spells
//
// Errors   kInvalid, kNotFound, kUnsupported; a field that no document can compute is refused when
//          it is read, with task and key: "task NAME: doc_to_text: ..."
// Source   lm-evaluation-harness 0.4.13, api/task.py, utils.py
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/evaluate/requests/known_functions.h"
#include "skein/jinja/template.h"
#include "skein/jinja/values/value.h"

namespace skein {

// What a field's meaning depends on.
struct FieldScope {
  std::string task;
  std::vector<std::string> columns;  // of the tested documents
  bool has_choices = false;          // whether the task has doc_to_choice
};

class DocumentField {
 public:
  enum class Role : uint8_t { kText, kTarget, kChoices };
  // `key` names the field in errors: "doc_to_text", "fewshot_config.doc_to_text".
  DocumentField(const jinja::Value& written, Role role, const std::string& key,
                const FieldScope& scope);

  // The value for a document, as the role has it.
  jinja::Value of(const jinja::Value& document) const;

 private:
  jinja::Value value_of_text(const std::string& text) const;

  jinja::Value written_;
  Role role_;
  std::string key_;
  bool has_choices_;
  bool is_column_ = false;
  std::optional<jinja::Template> template_;
  DocumentFunction function_;
};

// description and gen_prefix: a column of the document itself, else a template. Nothing if it is
// absent or empty.
class PromptField {
 public:
  PromptField(const jinja::Value& written, const std::string& key, const std::string& task);

  std::string of(const jinja::Value& document) const;
  // As the file has it.
  const std::string& written() const { return written_; }

 private:
  std::string written_, key_;
  std::optional<jinja::Template> template_;
};

}  // namespace skein
