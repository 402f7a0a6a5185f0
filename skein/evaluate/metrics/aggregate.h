// The scores of a task's documents as one number with its standard error, and those of tasks as
// their group's, as lm-evaluation-harness 0.4.13 computes them.
//
//   aggregation                                value              standard error
//   mean                                       sum / n            sample deviation / sqrt(n)
//   median                                     sorted[n / 2]      bootstrap
//   perplexity                                 exp(-mean)         bootstrap
//   nanmean                                    without NaN        bootstrap
//   f1 (binary, of label 1), matthews_corrcoef                    bootstrap
//   weighted_perplexity, bits_per_byte, brier_score, bypass       none
//
// Bootstrap  `rounds` samples in chunks of 1,000, chunk i by Python's random.Random(i).choices;
//            the deviation of their values. Rounds beyond whole chunks are left out.
// Order      of sums: CPython 3.11's sum() and numpy's, so that results are the same double, but
//            for brier_score, where numpy's exp is of other bits on some processors
// Cost       bootstrap: about 5 ns a score and round, on `num_threads` threads
// Errors     kUnsupported for another aggregation; kInvalid for no scores, for scores of another
//            kind, for labels of which f1 is not binary; kNotFinite for NaN in a median
// Source     lm_eval/api/metrics.py, evaluator_utils.py and group.py; sklearn/metrics, described
//            by their behaviour
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "skein/evaluate/metrics/score.h"

namespace skein {

struct Aggregate {
  double value = 0;
  std::optional<double> standard_error;  // nothing: "N/A"
};

// kUnsupported, with the names there are, for an aggregation that is none of these.
void check_aggregation(std::string_view aggregation, std::string_view metric);

// Without rounds, or of one score, there is no standard error. `metric` names it in errors. bypass
// has the value 999.
Aggregate aggregate_scores(std::string_view metric, std::string_view aggregation,
                           const std::vector<Score>& scores, int64_t rounds, int num_threads);

// What a group takes of one of its tasks.
struct TaskScore {
  double value;
  std::optional<double> standard_error;
  int64_t num_documents;
};

// The mean of the tasks' values, weighted by their documents with the pooled standard error, or
// not weighted; no standard error if a task has none.
Aggregate aggregate_group(const std::vector<TaskScore>& tasks, bool weight_by_size);

}  // namespace skein
