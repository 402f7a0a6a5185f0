// The results of an evaluation as lm-evaluation-harness writes them, so that scripts that read its
// files read these.
//
// Format   results_DATE.json: results {TASK: {alias, name, sample_len, "acc,none",
//          "acc_stderr,none"}}, groups, group_subtasks, configs, versions, n-shot,
//          higher_is_better, n-samples, config (what evaluated), date, model_name,
//          total_evaluation_time_seconds. A standard error that a metric has not is "N/A". Only
//          Skein has the keys skein.version, skein.run (of a checkpoint) and skein.asked
// Source   lm-evaluation-harness 0.4.13, result_schema.py, evaluator_utils.py
#pragma once

#include <string>

#include "skein/base/text/json.h"
#include "skein/evaluate/results/evaluation.h"

namespace skein {

// How and with what the model was evaluated.
struct EvaluationRecord {
  std::string model;      // its path
  std::string precision;  // of the computation
  std::string device;     // "cpu"
  int64_t max_length = 0;
  int64_t num_parameters = 0;
  OrderedJson limit;  // a number, or null
  uint64_t fewshot_seed = 1234;
  double date = 0;      // seconds since 1970
  double seconds = 0;   // that the evaluation took
  OrderedJson run;      // of a checkpoint: step, tokens, checkpoint (its checksum); else null
  OrderedJson asked;    // all that the results depend on beside the weights
  OrderedJson version;  // of Skein: version, commit
};

OrderedJson results_json(const Evaluation& evaluation, const EvaluationRecord& record);

// The names of files: "2026-11-29T06-41-16.123456".
std::string results_date(double seconds_since_1970);

// A line for each score: task, version, filter, shots, metric, value, standard error.
std::string results_table(const Evaluation& evaluation);

}  // namespace skein
