// Evaluates a model on tasks of lm-evaluation-harness.
//
// Order     all data sets are read, and all tasks checked, before the first request
// Numbers   computed in `engine.compute_dtype`, fp32 unless set, whatever the weights are stored as
// Memory    the engine's (engine.h) with a cache of `engine.cache_bytes` or one text, and the
//           documents
// Errors    those of the tasks, their data, and requests; each names the task. kUsage for a task
//           that runs what the model writes, without `execute`; those of PythonSandbox with it
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "skein/data/tokenizer/tokenizer.h"
#include "skein/evaluate/requests/requests.h"
#include "skein/evaluate/results/evaluation.h"
#include "skein/evaluate/results/score_task.h"
#include "skein/infer/engine.h"
#include "skein/runtime/executor.h"
#include "skein/weights/model_source.h"

namespace skein {

struct EvaluateOptions {
  std::vector<std::filesystem::path> data_folders;
  RequestOptions requests;
  ScoringOptions scoring;
  bool apply_chat_template = false;  // that of the model's tokenizer
  // `max_positions` 0: all that the model is meant for.
  EngineOptions engine = {.cache_bytes = kUsualCacheBytes};
  int64_t replicas = 1;
  bool execute = false;  // run the programs that the model writes, of tasks that score these
};

struct EvaluateProgress {
  std::string task;
  int64_t task_number = 0, num_tasks = 0;  // from 1
  int64_t num_done = 0, num_requests = 0;  // of the task
};

// A line for each thing that a person did not ask for: texts that were cut.
using EvaluateNote = std::function<void(const std::string&)>;

Evaluation evaluate_model(const ModelSource& source, const Tokenizer& tokenizer,
                          const std::vector<TaskNode>& asked, EvaluateOptions options,
                          const std::function<void(const EvaluateProgress&)>& progress,
                          const EvaluateNote& note);

}  // namespace skein
