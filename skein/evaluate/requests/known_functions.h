// The functions of Python that tasks of lm-evaluation-harness name with `!function`, as far as they
// are built in here. A function is known by its file (known_files.h) and its name: winogrande's
// preprocess_winogrande.py, doc_to_text.
//
// Errors   kUnsupported: "task NAME: KEY: !function FILE.NAME of the folder FOLDER is Python ...",
//          with the folders whose functions are built in; or that the file is not that of 0.4.13.
//          The functions themselves: kInvalid or kNotFound for a document that is not as its data
//          set has it
// Source   lm-evaluation-harness 0.4.13, tasks/*
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "skein/jinja/values/value.h"

namespace skein {

// A value of one document: doc_to_text, doc_to_target, doc_to_choice.
using DocumentFunction = std::function<jinja::Value(const jinja::Value& document)>;
// All documents of a split: process_docs.
using SplitFunction = std::function<std::vector<jinja::Value>(std::vector<jinja::Value> documents)>;
// process_results: how the answers of a document are scored. Scores are not computed here.
enum class ResultsFunction : uint8_t {
  kNone,
  kPageCounts,       // wikitext: words and bytes are those of the column `page`
  kTrueProbability,  // truthfulqa_mc2: the share of probability of the true answers
};

// `field`: what !function gives (tasks/task_config.h). `task` and `key` name it in errors.
DocumentFunction document_function(const jinja::Value& field, const std::string& task,
                                   const std::string& key);
SplitFunction split_function(const jinja::Value& field, const std::string& task,
                             const std::string& key);
// The few-shot documents that a function gives.
std::vector<jinja::Value> samples_function(const jinja::Value& field, const std::string& task);
// kNone for an undefined field.
ResultsFunction results_function(const jinja::Value& field, const std::string& task);
// Refuses `field` by name, as the functions above refuse a function that they do not know.
[[noreturn]] void refuse_function(const jinja::Value& field, const std::string& task,
                                  const std::string& key);

}  // namespace skein
