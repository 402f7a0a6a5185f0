#include "skein/evaluate/requests/known_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "skein/base/error.h"
#include "skein/evaluate/requests/document_functions.h"
#include "skein/evaluate/tasks/known_files.h"
#include "skein/evaluate/tasks/task_config.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

struct KnownFunction {
  std::string_view folder, name;
  Value (*call)(const Value&);
};
constexpr KnownFunction kOfDocuments[] = {
    {"copa", "doc_to_choice", copa_choice},
    {"copa", "doc_to_target", copa_target},
    {"copa", "doc_to_text", copa_text},
    {"logiqa", "doc_to_target", logiqa_target},
    {"logiqa", "doc_to_text", logiqa_text},
    {"medqa", "doc_to_target", medqa_target},
    {"medqa", "doc_to_text", medqa_text},
    {"mmlu_pro", "doc_to_text", mmlu_pro_text},
    {"mmlu_pro", "fewshot_to_target", mmlu_pro_target},
    {"mmlu_pro", "fewshot_to_text", mmlu_pro_text},
    {"pubmedqa", "doc_to_text", pubmedqa_text},
    {"race", "doc_to_choice", race_choice},
    {"race", "doc_to_target", race_target},
    {"race", "doc_to_text", race_text},
    {"wikitext", "wikitext_detokenizer", wikitext_target},
    {"winogrande", "doc_to_choice", winogrande_choice},
    {"winogrande", "doc_to_target", winogrande_target},
    {"winogrande", "doc_to_text", winogrande_text},
    {"xwinograd", "doc_to_choice", winogrande_choice},
    {"xwinograd", "doc_to_target", winogrande_target},
    {"xwinograd", "doc_to_text", winogrande_text},
};
// Subjects whose documents a task of mmlu_pro keeps, by utils.process_SUBJECT.
constexpr std::array<std::string_view, 14> kSubjects = {
    "biology",   "business",    "chemistry", "computer_science",
    "economics", "engineering", "health",    "history",
    "law",       "math",        "other",     "philosophy",
    "physics",   "psychology"};

constexpr std::string_view kFolders =
    "copa, hellaswag, humaneval, humaneval_infilling, logiqa, mbpp, medqa, mmlu_pro, pubmedqa, "
    "race, truthfulqa (truthfulqa_mc2), wikitext, winogrande, xwinograd";

std::vector<Value> of_subject(std::vector<Value> documents, const std::string& subject) {
  std::erase_if(documents, [&](const Value& document) {
    return text_column(document, "category") != subject;
  });
  return documents;
}

}  // namespace

void refuse_function(const Value& field, const std::string& task, const std::string& key) {
  const std::string folder = folder_of(field);
  const std::string name = function_name(field).value_or("");
  if (known_file(field).is_changed) {
    fail(ErrorCode::kUnsupported,
         "task {}: {}: {} is another file than the one of that name whose functions are built in "
         "(tasks/**/{} of lm-evaluation-harness 0.4.13), and Skein does not run Python",
         task, key, function_file(field)->string(), folder);
  }
  fail(ErrorCode::kUnsupported,
       "task {}: {}: !function {} of the folder {} is Python, which Skein does not run. Built in "
       "are functions of these folders: {}. Write {} as a template instead, or change the "
       "documents before: dataset_path: json reads them from a file",
       task, key, name, folder.empty() ? "(unknown)" : folder, kFolders, key);
}

DocumentFunction document_function(const Value& field, const std::string& task,
                                   const std::string& key) {
  const std::string_view folder = known_file(field).folder;
  for (const KnownFunction& known : kOfDocuments) {
    if (folder == known.folder && called_name(field) == known.name) return known.call;
  }
  refuse_function(field, task, key);
}

SplitFunction split_function(const Value& field, const std::string& task, const std::string& key) {
  const std::string_view folder = known_file(field).folder;
  const std::string name = called_name(field);
  if (folder == "hellaswag" && name == "process_docs") {
    return [](std::vector<Value> documents) {
      for (Value& document : documents) document = hellaswag_document(document);
      return documents;
    };
  }
  for (const std::string_view subject : kSubjects) {
    if (folder != "mmlu_pro" || name != fmt::format("process_{}", subject)) continue;
    std::string category(subject);
    std::replace(category.begin(), category.end(), '_', ' ');
    return [category](std::vector<Value> documents) {
      return of_subject(std::move(documents), category);
    };
  }
  refuse_function(field, task, key);
}

std::vector<Value> samples_function(const Value& field, const std::string& task) {
  if (known_file(field).folder == "mbpp" && called_name(field) == "list_fewshot_samples")
    return mbpp_samples();
  refuse_function(field, task, "fewshot_config.samples");
}

ResultsFunction results_function(const Value& field, const std::string& task) {
  if (field.is_undefined()) return ResultsFunction::kNone;
  const std::string_view folder = known_file(field).folder;
  const std::string name = called_name(field);
  if (folder == "wikitext" && name == "process_results") return ResultsFunction::kPageCounts;
  if (folder == "truthfulqa" && name == "process_results_mc2")
    return ResultsFunction::kTrueProbability;
  refuse_function(field, task, "process_results");
}

}  // namespace skein
