// The filters of a task, from what a model answered to what is scored, as lm-evaluation-harness
// 0.4.13 has them.
//
//   regex, multi_choice_regex   what an expression finds (python_regex.h), else the fallback
//   regex_pos                   the second members of ('token', 'TAG') pairs
//   remove_whitespace, lowercase, uppercase, map
//   take_first, take_first_k, majority_vote
//   custom                      functions that make a program of an answer (code_metric.h)
//
// A document has a list of answers. A filter gives a list, or from take_first on one answer; a
// filter after it sees the answer's characters, as in Python.
//
// Errors   kUnsupported for decontaminate, format_span, functions and other names;
//          kUsage for options that are none; kInvalid for an answer with which Python stops, such
//          as a group_select beyond the matches. All name the filter and the step.
// Threads  apply may run on several at once
// Source   lm_eval/filters/*.py, described by its behaviour
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skein/evaluate/tasks/task_config.h"
#include "skein/jinja/values/value.h"

namespace skein {

// Where a filter is: which document, of all that it gets.
struct FilteredDocument {
  const jinja::Value& document;
  size_t index;
};
using FilterStep =
    std::function<jinja::Value(const jinja::Value& answers, const FilteredDocument&)>;

class AnswerFilter {
 public:
  explicit AnswerFilter(const FilterConfig& config);
  static AnswerFilter take_first();  // named "none", of a task without filters

  const std::string& name() const { return name_; }

  // [document]: what its answers become. Both have one element a document.
  std::vector<jinja::Value> apply(std::vector<jinja::Value> answers,
                                  const std::vector<jinja::Value>& documents) const;

 private:
  std::string name_;
  std::vector<std::string> functions_;
  std::vector<FilterStep> steps_;
};

}  // namespace skein
