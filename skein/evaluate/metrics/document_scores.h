// The scores of one document, as ConfigurableTask.process_results of lm-evaluation-harness 0.4.13
// gives them.
//
// Formula  acc: the largest loglikelihood is that of the gold choice; acc_norm, acc_bytes: after a
//          division by the choice's characters or bytes; acc_mutual_info: less the loglikelihood
//          without a context; brier_score: the softmax of loglikelihoods; gold_bits_per_byte: the
//          right choice's -loglikelihood / ln 2 / bytes.
//          The largest is the first of equals, and the first NaN if there is one (numpy.argmax).
//          words: len(re.split(r"\s+", text)); bytes: of UTF-8
// Errors   kInvalid for a target with which Python stops: of another type, or an index below
//          -len(choices); kUnsupported for f1, mcc, brier_score of several targets
// Source   lm_eval/api/task.py, described by its behaviour
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/evaluate/metrics/metric.h"
#include "skein/evaluate/metrics/score.h"
#include "skein/jinja/values/value.h"

namespace skein {

struct JudgedChoices;  // of a document of multiple_choice, in the .cc

// A metric, with what computes it of a document of each type of output: null where it has none. To
// add one, add a row.
struct MetricRow {
  std::string_view name, aggregation;  // one of aggregate.h
  bool higher_is_better = true;
  Score (*of_choices)(const JudgedChoices&) = nullptr;
  Score (*of_loglikelihood)(double loglikelihood, bool is_greedy) = nullptr;
  Score (*of_rolling)(double loglikelihood, int64_t words, int64_t bytes) = nullptr;
  bool of_generated = false;  // by score_generated

  bool is_of(OutputType type) const;
};

// In the order in which a document's scores are listed.
std::span<const MetricRow> metric_rows();

struct MultipleChoiceAnswer {
  // Of each choice, summed over its tokens; for acc_mutual_info, then of each choice without a
  // context.
  std::vector<double> loglikelihoods;
  std::vector<bool> is_greedy;  // of each of these
  std::vector<std::string> choices;
  // An index (from the end if negative), a choice's text, or with several targets a list of
  // indices. Of a task whose documents are texts to choose from, what doc_to_text gives.
  jinja::Value target;
  bool has_several_targets = false;  // of the task: its first document's target is a list
};

struct MultipleChoiceScores {
  std::vector<MetricScore> scores;
  bool is_target_a_choice = true;  // else the document counts as wrong
};

MultipleChoiceScores score_multiple_choice(const MultipleChoiceAnswer& answer,
                                           const std::vector<ScoredMetric>& metrics);

std::vector<MetricScore> score_loglikelihood(double loglikelihood, bool is_greedy,
                                             const std::vector<ScoredMetric>& metrics);

std::vector<MetricScore> score_rolling(double loglikelihood, std::string_view text,
                                       const std::vector<ScoredMetric>& metrics);

struct GeneratedAnswer {
  jinja::Value answer;   // after the filter: a text, or a list of texts
  jinja::Value target;   // what doc_to_target gives
  jinja::Value choices;  // what doc_to_choice gives: the target is an index; undefined without it
  bool has_several_targets = false;  // as above: one that matches is enough
};

std::vector<MetricScore> score_generated(const GeneratedAnswer& answer,
                                         const std::vector<ScoredMetric>& metrics);

// Softmax as lm-evaluation-harness has it, with numpy's order of sums.
std::vector<double> softmax_of(const std::vector<double>& values);

}  // namespace skein
