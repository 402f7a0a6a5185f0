// The evaluations of [[evaluate]] during training: the tasks' texts as rows that only run forward
// through the run's own programs, in its layout and precision. Nothing is gathered or exported.
//
// Ranks    collective. Rank 0 reads the tasks and their data, and tells all ranks the tokens; each
//          scores its rows of every batch, and rank 0 has the scores
// Bits     training is not changed: programs that only run forward write neither weights, gradients
//          nor lanes, and draw nothing
// Memory   of each rank, the tokens of all texts; of rank 0, the documents as well
// Missing  an evaluation that the run's events lack for the step that this start begins after, as
//          its process ended before it was done, is made up for
// Errors   those of the tasks, their data and their scores, before the first step; in_step.h
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/evaluate/packed/packed_texts.h"
#include "skein/evaluate/packed/task_texts.h"
#include "skein/train/loop/step_runner.h"
#include "skein/train/start/prepared_run.h"

namespace skein {

class TaskEvaluation {
 public:
  // Both must outlive the evaluation.
  TaskEvaluation(PreparedRun& run, StepRunner& runner) : run_(run), runner_(runner) {}

  // Reads the tasks. `tells`: says what an evaluation costs. Of a run that has all its steps, only
  // those that are missing.
  void prepare(bool tells);
  bool is_any_missing() const;
  void make_up_for_missing(int64_t step);
  // Whether tasks are evaluated after `step`, wherever the run ends.
  bool is_due(int64_t step) const;
  // Evaluates those that are due, under the weights after `step`.
  void evaluate(int64_t step) { evaluate(step, true); }
  // Those that were not evaluated after `step`, the last one: `with_due` for all.
  void evaluate_at_end(int64_t step, bool with_due);

 private:
  struct Table {
    const EvaluateConfig& config;
    std::optional<TaskTexts> tasks;  // of rank 0
    PackedTexts texts;
    bool is_missing = false;
  };
  void evaluate(int64_t step, bool those_due);
  std::vector<bool> missing() const;
  Table prepared(const EvaluateConfig& config, bool tells) const;
  void refuse_tasks_in_two_tables() const;
  void evaluate(Table& table, int64_t step);
  void tell(const Table& table) const;
  int64_t num_batches(const Table& table) const;
  std::vector<double> logprobs(const Table& table, int64_t step);

  PreparedRun& run_;
  StepRunner& runner_;
  std::vector<Table> tables_;
};

}  // namespace skein
