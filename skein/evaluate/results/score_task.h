// The scores of a task from what a model answered, and those of groups from their tasks'.
//
// Errors   those of the metrics, with the task's name
// Source   lm-evaluation-harness 0.4.13, evaluator.py, evaluator_utils.py, api/group.py
#pragma once

#include <memory>
#include <vector>

#include "skein/evaluate/execution/python_sandbox.h"
#include "skein/evaluate/results/document_answers.h"
#include "skein/evaluate/results/evaluation.h"

namespace skein {

struct ScoringOptions {
  bool log_samples = false;
  int64_t bootstrap_rounds = 100'000;
  int num_threads = 1;
  std::shared_ptr<const PythonSandbox> sandbox;  // of tasks that run what the model writes
};

// Refuses by name a task whose answers nothing here can score, before a model is asked.
void check_scoring(const TaskConfig& task);

// num_fewshot and num_documents of the result stay 0.
TaskScores score_task(std::shared_ptr<const TaskConfig> task, const RequestsForm& form,
                      const std::vector<DocumentAnswers>& documents, const ScoringOptions& options);

// Of all groups in `asked`.
std::vector<GroupScores> score_groups(const std::vector<TaskNode>& asked,
                                      const std::vector<TaskScores>& tasks);

}  // namespace skein
