// A task of evaluation as a file of lm-evaluation-harness describes it: which documents, which
// requests are made of each, and how the answers are scored.
//
// Fields that are templates, names of columns or functions are kept as the file has them, as values
// of a template (jinja/values): a string, a number, a list, a dict, or for `!function utils.name` a
// callable whose name is "utils.name" (function_name()). What they mean: requests/document_field.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "skein/jinja/values/value.h"

namespace skein {

enum class OutputType : uint8_t { kMultipleChoice, kLoglikelihood, kRolling, kGenerateUntil };

// How the few-shot examples are chosen and written. Where the file's fewshot_config does not name
// a field, it has the task's.
struct FewShotConfig {
  std::string sampler = "default";  // or first_n
  std::optional<std::string> split;
  jinja::Value samples;  // a list of documents; undefined: they come from a split
  jinja::Value indices;  // fewshot_indices
  jinja::Value process_docs, doc_to_text, doc_to_choice, doc_to_target, gen_prefix;
  std::string fewshot_delimiter, target_delimiter;
};

struct MetricConfig {
  std::string name;
  jinja::Value function;                 // of `metric: !function file.name`; `name` is then "name"
  std::string aggregation;               // empty: the metric's own
  jinja::Value aggregation_function;     // of `aggregation: !function file.name`
  std::optional<bool> higher_is_better;  // without it, the metric's own
  std::optional<bool> hf_evaluate;
  jinja::Value options;  // the other keys, a dict; without effect where process_results is set
};

// One of filter_list: its steps run in order over the answers of each document.
struct FilterConfig {
  std::string name;
  struct Step {
    std::string function;
    jinja::Value called;   // of `function: !function file.name`; `function` is then "name"
    jinja::Value options;  // the other keys, a dict
  };
  std::vector<Step> steps;
};

struct TaskConfig {
  std::filesystem::path file;  // that describes it
  std::string task, alias;     // alias: empty where the file has none
  std::vector<std::string> tags;

  // Of requests that are written out already (request_file.h), in place of a data set.
  std::filesystem::path request_file;
  std::string dataset_path, dataset_name;  // empty where the file has none
  jinja::Value dataset_kwargs;             // a dict, or undefined
  std::optional<std::string> training_split, validation_split, test_split;

  OutputType output_type = OutputType::kGenerateUntil;
  jinja::Value process_docs, doc_to_text, doc_to_target, doc_to_choice, description, gen_prefix;
  jinja::Value process_results;
  std::string target_delimiter = " ", fewshot_delimiter = "\n\n";
  FewShotConfig fewshot;
  std::optional<int64_t> num_fewshot;

  std::vector<MetricConfig> metrics;  // empty: those of the output type
  std::vector<FilterConfig> filters;  // empty: one named "none", which takes the first answer
  jinja::Value generation_kwargs;  // a dict with `until`; of another type than kGenerateUntil, only
                                   // where the file has it
  int64_t repeats = 1;
  bool unsafe_code = false;
  bool should_decontaminate = false;
  jinja::Value doc_to_decontamination_query;
  jinja::Value metadata;  // a dict; has config_source, the file, unless a group's file has the task
  jinja::Value written;   // all keys as the files have them, includes and overrides merged
};

// "utils.name" of `!function utils.name`, else nothing.
std::optional<std::string> function_name(const jinja::Value& field);
// The file of Python that has it: utils.py in the folder of the YAML file that names it.
std::optional<std::filesystem::path> function_file(const jinja::Value& field);

}  // namespace skein
