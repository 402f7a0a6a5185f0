// The functions of humaneval, humaneval_infilling and mbpp: metrics of programs that a model wrote,
// and filters that make a program of an answer. Nothing is run here.
//
//   pass_at_k                       "pass@K" for each K of its option k
//   pass_at_1                       "pass_at_1", the share of samples that pass
//   humaneval.build_predictions     the column prompt and the answer
//   …build_predictions_instruct     the same, of the answer what is before ```
//   humaneval_infilling, the same   prompt, answer, suffix
//   mbpp.build_predictions          the first block between ``` of the answer, which begins in one
//
// Errors   kUnsupported for other functions of Python; kUsage for options that are none, and a k
//          that is no list of whole numbers above 0
// Source   lm-evaluation-harness 0.4.13, tasks/{humaneval,humaneval_infilling,mbpp}/utils.py
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/evaluate/metrics/answer_filters.h"
#include "skein/evaluate/metrics/options.h"

namespace skein {

struct CodeMetric {
  struct Score {
    std::string name;  // "pass@10"
    int64_t k;
  };
  std::vector<Score> scores;  // what the metric gives
};

// Of a metric that is a function.
CodeMetric code_metric(const MetricConfig& config);
// The step `custom`, whose option filter_fn is the function.
FilterStep code_step(const Options& options);

}  // namespace skein
