// The requests that a task makes of a model, to the byte those of lm-evaluation-harness.
//
//   multiple_choice        kLoglikelihood for each choice: target_delimiter + choice. If
//                          doc_to_text is a number ("multiple inputs"), each choice has a context
//                          of its own, and all have the target as continuation. The metric
//                          acc_mutual_info adds a request without context for each choice
//   loglikelihood          one, whose continuation is the target as it is, without a delimiter
//   loglikelihood_rolling  one, of the target
//   generate_until         one; until when, and how many tokens: the task's generation_kwargs
//
// Context   system instruction and description, examples, the document's question; a delimiter is
//           behind a question whose answer follows, and behind an answer
// As the harness has it
//   - the tested document is no example of its own only if fewshot_split is test_split; if both are
//     absent, one more is drawn too, from whichever split the examples are
//   - num_fewshot of the options has no effect on a task that sets num_fewshot: 0
//   - fewshot_indices has no effect
//   - an index of a right answer that is beyond the choices is a request like any other, unless it
//     is that of the first document or of an example
// Refused here, where the harness stops or makes no use of the requests
//   - no documents; a column that is missing; a choice that is no text; no choices at all; an empty
//     choice of the first document; a question or an example's answer that is no text
// Errors    Error, "task NAME: document N: ..."; N counts from 0
// Source    lm-evaluation-harness 0.4.13, api/task.py, evaluator.py
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/evaluate/requests/document_field.h"
#include "skein/evaluate/requests/few_shot.h"
#include "skein/evaluate/requests/known_functions.h"
#include "skein/evaluate/requests/prompt.h"
#include "skein/evaluate/tasks/task_config.h"
#include "skein/jinja/values/value.h"

namespace skein {

struct EvaluationRequest {
  enum class Kind : uint8_t { kLoglikelihood, kRolling, kGenerateUntil };
  Kind kind = Kind::kLoglikelihood;
  std::string context;       // empty for kRolling
  std::string continuation;  // empty for kGenerateUntil; of kRolling, the text
  int64_t document = 0;      // its place among the tested documents
  int64_t index = 0;         // of the request, among those of the document
};

// What a document asks, and what its answers are scored by.
struct DocumentRequests {
  int64_t document = 0;
  jinja::Value values;  // the document, after process_docs
  jinja::Value text;    // doc_to_text: of multiple inputs, the place of the right choice
  jinja::Value target;  // doc_to_target
  std::vector<std::string> choices;
  std::vector<std::string> contexts;  // one; of multiple inputs, one for each choice
  std::vector<EvaluationRequest> requests;
  std::string counted_text;  // of loglikelihood_rolling: whose words and bytes count
};

// What scoring must know of all documents together.
struct RequestsForm {
  ResultsFunction results = ResultsFunction::kNone;
  bool has_multiple_inputs = false;   // each choice has a context of its own
  bool has_multiple_targets = false;  // the first document's target is a list
};

struct RequestOptions {
  std::optional<int64_t> num_fewshot;
  std::optional<double> limit;  // documents; below 1: the share of them, rounded up
  uint64_t seed = 1234;         // of the few-shot examples
  std::string system_instruction;
  ChatTemplate chat_template;  // none: plain text
  bool fewshot_as_multiturn = true;
};

// test_split, else validation_split. Errors: kInvalid if there is neither.
std::string tested_split(const TaskConfig& config);
// The split of the examples; nothing where fewshot_config.samples has them.
std::optional<std::string> few_shot_split(const TaskConfig& config);
// How many examples each document has.
int64_t num_few_shot(const TaskConfig& config, const RequestOptions& options);

// How many of `count` documents the limit leaves.
int64_t limited(int64_t count, const std::optional<double>& limit);

class TaskRequests {
 public:
  // `tested` and `examples`: the documents of the splits above, as they are stored. `examples` may
  // be empty if there are none to draw; for fewshot_config.samples that names a function, the
  // documents that it gives. `config` must outlive this.
  TaskRequests(const TaskConfig& config, std::vector<jinja::Value> tested,
               std::vector<jinja::Value> examples, const RequestOptions& options);

  // After process_docs and the limit.
  int64_t num_documents() const { return num_documents_; }
  // Those of the next document, in order: examples are drawn as it is made. Nothing at the end.
  std::optional<DocumentRequests> next();
  RequestsForm form() const { return {results_, num_inputs_ > 0, has_multiple_targets_}; }

 private:
  struct Fields {
    std::optional<DocumentField> text, target, choices;
    std::optional<PromptField> gen_prefix;
    Delimiters delimiters;
  };
  void read_fields();
  void read_example_fields(const FieldScope& scope);
  void read_examples(std::vector<jinja::Value> examples);
  void look_at_first();
  DocumentRequests requests_of(int64_t place);
  Prompt instructions(const jinja::Value& document) const;
  void add_examples(Prompt& prompt, const jinja::Value& document);
  void add_example(Prompt& prompt, const jinja::Value& example) const;
  std::string question_of(const jinja::Value& text, const std::vector<std::string>& choices) const;
  void make_contexts(DocumentRequests& made);
  void make_requests(DocumentRequests& made) const;
  void make_choice_requests(DocumentRequests& made) const;
  std::string rendered(const Prompt& prompt, bool has_prefix) const;

  const TaskConfig& config_;
  RequestOptions options_;
  std::vector<jinja::Value> documents_;
  int64_t num_documents_ = 0;
  int64_t next_ = 0;
  int64_t num_few_shot_ = 0;
  Fields fields_, example_fields_;
  std::optional<PromptField> description_;
  std::optional<FewShotSampler> sampler_;
  ResultsFunction results_ = ResultsFunction::kNone;
  size_t num_inputs_ = 0;  // of multiple inputs: the choices of the first document; else 0
  bool has_multiple_targets_ = false;
};

}  // namespace skein
