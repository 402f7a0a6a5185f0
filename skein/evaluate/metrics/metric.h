// The metrics of a task, with what they need to score a document and to aggregate.
//
//   multiple_choice         acc, acc_norm, acc_bytes, acc_mutual_info, exact_match, f1, mcc,
//                           brier_score; and of Skein alone gold_bits_per_byte
//   loglikelihood           acc, perplexity
//   loglikelihood_rolling   word_perplexity, byte_perplexity, bits_per_byte
//   generate_until          exact_match (with options), bypass; pass_at_k and pass_at_1, functions
//                           of tasks that run what the model writes (code_metric.h)
//
// Errors   kUnsupported by name: bleu, chrf, chrf++, ter, likelihood, code_eval, hf_evaluate,
//          other functions of Python, a metric of another type of output, which
//          lm-evaluation-harness drops; kUsage for options that exact_match does not have
// Source   lm_eval/api/metrics.py and task.py of 0.4.13, described by their behaviour
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/evaluate/metrics/code_metric.h"
#include "skein/evaluate/metrics/python_regex.h"
#include "skein/evaluate/tasks/task_config.h"

namespace skein {

// Steps of exact_match, in this order, on the answer and the target.
struct ExactMatchOptions {
  std::vector<PythonRegex> regexes_to_ignore;  // re.sub(.., "")
  bool ignore_case = false, ignore_punctuation = false, ignore_numbers = false;

  bool needs_text() const {
    return !regexes_to_ignore.empty() || ignore_case || ignore_punctuation || ignore_numbers;
  }
};

struct ScoredMetric {
  std::string name;
  std::string aggregation;  // a name of aggregate.h
  bool higher_is_better = true;
  ExactMatchOptions exact_match;             // of exact_match of generate_until
  std::optional<CodeMetric> code;            // of pass_at_k and pass_at_1
  std::vector<std::string> ignored_options;  // without effect, as in lm-evaluation-harness
};

ScoredMetric make_metric(const MetricConfig& config, OutputType type);

// Of each metric of the task; without any, those of its type: acc and acc_norm of multiple_choice,
// perplexity and acc of loglikelihood, the three of rolling, exact_match of generate_until.
std::vector<ScoredMetric> make_metrics(const std::vector<MetricConfig>& configs, OutputType type);

}  // namespace skein
