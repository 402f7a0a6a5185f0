#include "skein/evaluate/requests/requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "skein/base/error.h"
#include "skein/evaluate/requests/answers.h"
#include "skein/evaluate/requests/document_functions.h"

namespace skein {

using jinja::Kind;
using jinja::Value;
using Role = DocumentField::Role;

namespace {

std::vector<Value> processed(std::vector<Value> documents, const Value& function,
                             const TaskConfig& config, const char* key) {
  if (function.is_undefined() || function.is(Kind::kNone)) return documents;
  if (!function.is(Kind::kCallable)) {
    fail(ErrorCode::kInvalid, "task {}: {} is a {}; expected a function", config.task, key,
         type_name(function));
  }
  return split_function(function, config.task, key)(std::move(documents));
}

void check_documents(const std::vector<Value>& documents, const TaskConfig& config,
                     const char* what) {
  for (size_t i = 0; i < documents.size(); ++i) {
    if (documents[i].is(Kind::kDict) && !documents[i].as_dict().entries.empty()) continue;
    fail(ErrorCode::kInvalid, "task {}: {} {} is no dict with columns", config.task, what, i);
  }
}

std::vector<std::string> columns_of(const Value& document) {
  std::vector<std::string> columns;
  for (const auto& entry : document.as_dict().entries) {
    if (entry.first.is_string()) columns.push_back(entry.first.text());
  }
  return columns;
}

// What a template does not find is often a column of another name.
std::string with_columns(const Error& error, const Value& document) {
  const std::string what = error.what();
  if (!what.ends_with("is undefined")) return what;
  return fmt::format("{}; the document has the columns {}", what,
                     fmt::join(columns_of(document), ", "));
}

}  // namespace

int64_t limited(int64_t count, const std::optional<double>& limit) {
  if (!limit) return count;
  if (!(*limit > 0)) fail(ErrorCode::kUsage, "limit is {}; expected a number above 0", *limit);
  const double most = *limit < 1 ? std::ceil(static_cast<double>(count) * *limit) : *limit;
  return most < static_cast<double>(count) ? static_cast<int64_t>(most) : count;
}

std::string tested_split(const TaskConfig& config) {
  if (config.test_split) return *config.test_split;
  if (config.validation_split) return *config.validation_split;
  fail(ErrorCode::kInvalid, "task {}: neither test_split nor validation_split; expected one",
       config.task);
}

std::optional<std::string> few_shot_split(const TaskConfig& config) {
  if (config.fewshot.split) return config.fewshot.split;
  if (!config.fewshot.samples.is_undefined()) return std::nullopt;
  if (config.training_split) return config.training_split;
  return config.validation_split ? config.validation_split : config.test_split;
}

int64_t num_few_shot(const TaskConfig& config, const RequestOptions& options) {
  const int64_t count = config.num_fewshot == 0 || !options.num_fewshot
                            ? config.num_fewshot.value_or(0)
                            : *options.num_fewshot;
  if (count < 0) {
    fail(ErrorCode::kUsage, "task {}: num_fewshot is {}; expected 0 or more", config.task, count);
  }
  return count;
}

TaskRequests::TaskRequests(const TaskConfig& config, std::vector<Value> tested,
                           std::vector<Value> examples, const RequestOptions& options)
    : config_(config), options_(options), num_few_shot_(num_few_shot(config, options)) {
  check_documents(tested, config, "document");
  documents_ = processed(std::move(tested), config.process_docs, config, "process_docs");
  if (documents_.empty()) {
    fail(ErrorCode::kInvalid, "task {}: the split {} has no documents", config.task,
         tested_split(config));
  }
  num_documents_ = limited(static_cast<int64_t>(documents_.size()), options.limit);
  results_ = skein::results_function(config.process_results, config.task);
  read_fields();
  if (num_few_shot_ > 0) read_examples(std::move(examples));
  look_at_first();
}

void TaskRequests::read_fields() {
  const FieldScope scope{config_.task, columns_of(documents_[0]), is_given(config_.doc_to_choice)};
  fields_.text.emplace(config_.doc_to_text, Role::kText, "doc_to_text", scope);
  fields_.target.emplace(config_.doc_to_target, Role::kTarget, "doc_to_target", scope);
  if (scope.has_choices)
    fields_.choices.emplace(config_.doc_to_choice, Role::kChoices, "doc_to_choice", scope);
  fields_.gen_prefix.emplace(config_.gen_prefix, "gen_prefix", config_.task);
  fields_.delimiters = {config_.target_delimiter, ""};
  description_.emplace(config_.description, "description", config_.task);
  if (num_few_shot_ > 0) read_example_fields(scope);
}

void TaskRequests::read_example_fields(const FieldScope& scope) {
  const FewShotConfig& few = config_.fewshot;
  // A field of fewshot_config that is the task's own is called by the task's name.
  const auto field = [&](const Value& own, const Value& of_task, Role role,
                         const std::string& key) {
    const bool is_own =
        is_given(own) && (own.kind() != of_task.kind() || own.identity() != of_task.identity());
    return DocumentField(is_given(own) ? own : of_task, role,
                         (is_own ? "fewshot_config." : "") + key, scope);
  };
  Fields& fields = example_fields_;
  fields.text.emplace(field(few.doc_to_text, config_.doc_to_text, Role::kText, "doc_to_text"));
  fields.target.emplace(
      field(few.doc_to_target, config_.doc_to_target, Role::kTarget, "doc_to_target"));
  if (is_true(few.doc_to_choice)) {
    fields.choices.emplace(
        field(few.doc_to_choice, config_.doc_to_choice, Role::kChoices, "doc_to_choice"));
  }
  fields.gen_prefix.emplace(few.gen_prefix, "fewshot_config.gen_prefix", config_.task);
  fields.delimiters = {few.target_delimiter, few.fewshot_delimiter};
}

void TaskRequests::read_examples(std::vector<Value> examples) {
  const FewShotConfig& few = config_.fewshot;
  const Value& samples = few.samples;
  if (few.split) {
    examples =
        processed(std::move(examples), few.process_docs, config_, "fewshot_config.process_docs");
  } else if (samples.is_undefined()) {
    examples = processed(std::move(examples), config_.process_docs, config_, "process_docs");
  } else if (samples.is(Kind::kSequence)) {
    examples = samples.as_sequence().items;
  } else if (!samples.is(Kind::kCallable)) {
    fail(ErrorCode::kInvalid, "task {}: fewshot_config.samples is a {}; expected a list of dicts",
         config_.task, type_name(samples));
  } else {
    examples = samples_function(samples, config_.task);
  }
  check_documents(examples, config_, "few-shot document");
  sampler_.emplace(few.sampler, std::move(examples), options_.seed, config_.task);
}

// The harness looks at the first document to see whether inputs or targets are several.
void TaskRequests::look_at_first() try {
  const Value& first = documents_[0];
  const Value text = fields_.text->of(first);
  const Value target = fields_.target->of(first);
  has_multiple_targets_ = is_list(target);
  if (!fields_.choices) return;
  const std::vector<std::string> choices = choices_of(fields_.choices->of(first));
  if (is_whole_number(text)) num_inputs_ = choices.size();
  if (std::find(choices.begin(), choices.end(), "") != choices.end())
    fail(ErrorCode::kInvalid, "a choice of doc_to_choice is empty; expected text");
  if (is_whole_number(target)) choice_at(choices, target);
} catch (const Error& error) {
  fail(error.code(), "task {}: document 0: {}", config_.task, with_columns(error, documents_[0]));
}

std::optional<DocumentRequests> TaskRequests::next() {
  if (next_ >= num_documents_) return std::nullopt;
  try {
    return requests_of(next_++);
  } catch (const Error& error) {
    fail(error.code(), "task {}: document {}: {}", config_.task, next_ - 1,
         with_columns(error, documents_[static_cast<size_t>(next_ - 1)]));
  }
}

DocumentRequests TaskRequests::requests_of(int64_t place) {
  DocumentRequests made;
  made.document = place;
  made.values = documents_[static_cast<size_t>(place)];
  made.text = fields_.text->of(made.values);
  if (fields_.choices) made.choices = choices_of(fields_.choices->of(made.values));
  made.target = fields_.target->of(made.values);
  make_contexts(made);
  make_requests(made);
  return made;
}

Prompt TaskRequests::instructions(const Value& document) const {
  std::string text =
      joined(options_.system_instruction, description_->of(document), config_.fewshot_delimiter);
  Prompt prompt;
  if (!text.empty()) prompt.push_back({"system", std::move(text), ""});
  return prompt;
}

void TaskRequests::add_examples(Prompt& prompt, const Value& document) {
  if (num_few_shot_ == 0) return;
  const bool may_hold_document = config_.fewshot.split == config_.test_split;
  for (const int64_t place :
       sampler_->sample(num_few_shot_, may_hold_document ? &document : nullptr)) {
    try {
      add_example(prompt, sampler_->document(place));
    } catch (const Error& error) {
      fail(error.code(), "few-shot document {}: {}", place, error.what());
    }
  }
}

void TaskRequests::add_example(Prompt& prompt, const Value& example) const {
  const Value text = example_fields_.text->of(example);
  std::vector<std::string> choices;
  if (example_fields_.choices) choices = choices_of(example_fields_.choices->of(example));
  const Value target = example_fields_.target->of(example);
  const std::string prefix = example_fields_.gen_prefix->of(example);
  const std::string question = question_of(text, choices);
  if (num_inputs_ > 0) choices.clear();
  const std::optional<std::string> answer = answer_of(target, choices);
  add_turn(prompt, question, answer ? &*answer : nullptr, prefix, example_fields_.delimiters);
}

std::string TaskRequests::question_of(const Value& text,
                                      const std::vector<std::string>& choices) const {
  if (num_inputs_ > 0) return choice_at(choices, text);
  if (text.is_string()) return text.text();
  fail(ErrorCode::kInvalid, "doc_to_text gives a {}; expected text", type_name(text));
}

std::string TaskRequests::rendered(const Prompt& prompt, bool has_prefix) const {
  if (!options_.chat_template) return prompt_text(prompt);
  return options_.chat_template(chat_messages(prompt, options_.fewshot_as_multiturn), !has_prefix);
}

void TaskRequests::make_contexts(DocumentRequests& made) {
  const std::string prefix = fields_.gen_prefix->of(made.values);
  Prompt prompt = instructions(made.values);
  add_examples(prompt, made.values);
  if (num_inputs_ == 0) {
    add_turn(prompt, question_of(made.text, {}), nullptr, prefix, fields_.delimiters);
    made.contexts.push_back(rendered(prompt, !prefix.empty()));
    return;
  }
  for (const std::string& choice : made.choices) {
    Prompt whole = prompt;
    add_turn(whole, choice, nullptr, prefix, {"", ""});
    made.contexts.push_back(rendered(whole, !prefix.empty()));
  }
}

void TaskRequests::make_requests(DocumentRequests& made) const {
  using RequestKind = EvaluationRequest::Kind;
  const OutputType type = config_.output_type;
  if (type == OutputType::kMultipleChoice) return make_choice_requests(made);
  if (num_inputs_ > 0)
    fail(ErrorCode::kInvalid, "doc_to_text gives a number; output_type: multiple_choice takes it");
  EvaluationRequest request{RequestKind::kGenerateUntil, made.contexts[0], "", made.document, 0};
  if (type != OutputType::kGenerateUntil) {
    request.kind =
        type == OutputType::kRolling ? RequestKind::kRolling : RequestKind::kLoglikelihood;
    if (!made.target.is_string()) {
      fail(ErrorCode::kInvalid, "doc_to_target gives a {}; expected text", type_name(made.target));
    }
    request.continuation = made.target.text();
  }
  if (type == OutputType::kRolling) {
    request.context.clear();
    made.counted_text = results_ == ResultsFunction::kPageCounts ? text_column(made.values, "page")
                                                                 : request.continuation;
  }
  made.requests.push_back(std::move(request));
}

void TaskRequests::make_choice_requests(DocumentRequests& made) const {
  if (!fields_.choices)
    fail(ErrorCode::kInvalid, "output_type: multiple_choice without doc_to_choice");
  if (made.choices.empty()) fail(ErrorCode::kInvalid, "doc_to_choice gives no choices");
  // A chat template ends where the answer begins.
  const std::string& prefix = fields_.gen_prefix->written();
  const bool is_delimited =
      !options_.chat_template || (!prefix.empty() && !ends_with_space(prefix));
  const std::string delimiter = is_delimited ? config_.target_delimiter : "";
  const auto add = [&](const std::string& context, const std::string& continuation) {
    made.requests.push_back({EvaluationRequest::Kind::kLoglikelihood, context,
                             delimiter + continuation, made.document,
                             static_cast<int64_t>(made.requests.size())});
  };
  if (num_inputs_ > 0) {
    const std::string target = shown(made.target);
    for (const std::string& context : made.contexts) add(context, target);
  } else {
    for (const std::string& choice : made.choices) add(made.contexts[0], choice);
  }
  const bool has_mutual_info =
      std::any_of(config_.metrics.begin(), config_.metrics.end(),
                  [](const MetricConfig& metric) { return metric.name == "acc_mutual_info"; });
  if (!has_mutual_info) return;
  for (const std::string& choice : made.choices) add("", choice);
}

}  // namespace skein
