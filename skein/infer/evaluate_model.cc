#include "skein/infer/evaluate_model.h"

#include <utility>

#include "skein/base/error.h"
#include "skein/evaluate/prepare/prepared_task.h"
#include "skein/evaluate/results/code_scores.h"
#include "skein/infer/chat_prompts.h"
#include "skein/infer/task_answers.h"
#include "skein/weights/generation_defaults.h"

namespace skein {
namespace {

bool executes(const TaskConfig& task) { return task.unsafe_code || runs_programs(task); }

void check_execution(const TaskConfig& task, bool may_execute) {
  if (may_execute || !executes(task)) return;
  fail(ErrorCode::kUsage,
       "task {} runs the programs that the model writes, with python3, in namespaces of their own "
       "without network and files of this machine: add --execute to allow it",
       task.task);
}

}  // namespace

Evaluation evaluate_model(const ModelSource& source, const Tokenizer& tokenizer,
                          const std::vector<TaskNode>& asked, EvaluateOptions options,
                          const std::function<void(const EvaluateProgress&)>& progress,
                          const EvaluateNote& note) {
  const int64_t max_length = engine_positions(source.config(), options.engine.max_positions);
  options.engine.max_positions = max_length;
  if (options.apply_chat_template) {
    options.requests.chat_template = chat_prompts(source.tokenizer(), note);
  }
  ScoringOptions scoring = options.scoring;
  for (const auto& config : tasks_of(asked)) check_execution(*config, options.execute);
  std::vector<PreparedTask> tasks = prepare_tasks(asked, options.data_folders, options.requests);
  for (const PreparedTask& task : tasks) {
    if (scoring.sandbox == nullptr && executes(*task.config)) {
      scoring.sandbox = std::make_shared<const PythonSandbox>();
    }
  }
  if (options.execute && scoring.sandbox == nullptr) {
    note("--execute has no effect: no task runs programs");
  }

  EngineReplicas engines(source, options.engine, options.replicas);
  TextEncoder encoder(tokenizer, max_length);
  Answerer answerer(engines, encoder, tokenizer);
  const std::vector<int64_t> eos_ids = generation_defaults(source).eos_ids;
  Evaluation evaluation;
  evaluation.asked = asked;
  EvaluateProgress at;
  at.num_tasks = std::ssize(tasks);
  for (PreparedTask& task : tasks) {
    at.task = task.config->task;
    ++at.task_number;
    const int64_t num_cut = encoder.num_cut();
    const auto answers = answer_task(task, answerer, eos_ids, [&](int64_t done, int64_t of) {
      at.num_done = done;
      at.num_requests = of;
      progress(at);
    });
    if (encoder.num_cut() > num_cut) {
      note(
          fmt::format("task {}: {} texts are longer than the model's {} tokens, and lost their "
                      "beginning",
                      at.task, encoder.num_cut() - num_cut, max_length));
    }
    evaluation.tasks.push_back(score_prepared(task, answers, scoring, note));
  }
  evaluation.groups = score_groups(asked, evaluation.tasks);
  return evaluation;
}

}  // namespace skein
