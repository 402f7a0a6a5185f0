#include "skein/infer/evaluate_model.h"

#include <utility>

#include "skein/base/error.h"
#include "skein/evaluate/documents/dataset.h"
#include "skein/evaluate/results/code_scores.h"
#include "skein/evaluate/tasks/generation_settings.h"
#include "skein/infer/chat_prompts.h"
#include "skein/infer/task_answers.h"
#include "skein/weights/generation_defaults.h"

namespace skein {
namespace {

struct PreparedTask {
  std::shared_ptr<const TaskConfig> config;
  TaskRequests requests;
  int64_t num_documents = 0;  // of the split
  int64_t num_fewshot = 0;
};

bool executes(const TaskConfig& task) { return task.unsafe_code || runs_programs(task); }

void check_execution(const TaskConfig& task, bool may_execute) {
  if (may_execute || !executes(task)) return;
  fail(ErrorCode::kUsage,
       "task {} runs the programs that the model writes, with python3, in namespaces of their own "
       "without network and files of this machine: add --execute to allow it",
       task.task);
}

PreparedTask prepared(std::shared_ptr<const TaskConfig> config, const EvaluateOptions& options) {
  check_scoring(*config);
  check_execution(*config, options.execute);
  if (config->output_type == OutputType::kGenerateUntil) generation_settings(*config);
  const Dataset dataset({config->dataset_path, config->dataset_name, config->dataset_kwargs},
                        options.data_folders);
  Documents tested = dataset.split(tested_split(*config));
  const int64_t num_fewshot = num_few_shot(*config, options.requests);
  std::vector<jinja::Value> examples;
  if (num_fewshot > 0) {
    if (const auto split = few_shot_split(*config)) examples = dataset.split(*split).rows;
  }
  const auto num_documents = std::ssize(tested.rows);
  TaskRequests requests(*config, std::move(tested.rows), std::move(examples), options.requests);
  return {std::move(config), std::move(requests), num_documents, num_fewshot};
}

EngineOptions engine_options(const EvaluateOptions& options, int64_t max_length) {
  EngineOptions engine;
  engine.compute_dtype = options.dtype;
  engine.max_positions = max_length;
  engine.cache_bytes = kUsualCacheBytes;
  return engine;
}

}  // namespace

Evaluation evaluate_model(const ModelSource& source, const Tokenizer& tokenizer, Device& device,
                          const std::vector<TaskNode>& asked, EvaluateOptions options,
                          const std::function<void(const EvaluateProgress&)>& progress,
                          const EvaluateNote& note) {
  const int64_t max_length = engine_positions(source.config(), options.max_length);
  if (options.apply_chat_template) {
    options.requests.chat_template = chat_prompts(source.tokenizer(), note);
  }
  std::vector<PreparedTask> tasks;
  ScoringOptions scoring = options.scoring;
  for (const auto& config : tasks_of(asked)) {
    tasks.push_back(prepared(config, options));
    if (scoring.sandbox == nullptr && executes(*config)) {
      scoring.sandbox = std::make_shared<const PythonSandbox>();
    }
  }
  if (options.execute && scoring.sandbox == nullptr) {
    note("--execute has no effect: no task runs programs");
  }

  TextEngine engine(source, device, engine_options(options, max_length));
  TextEncoder encoder(tokenizer, max_length);
  Answerer answerer(engine, encoder, tokenizer);
  const std::vector<int64_t> eos_ids = generation_defaults(source).eos_ids;
  Evaluation evaluation;
  evaluation.asked = asked;
  EvaluateProgress at;
  at.num_tasks = std::ssize(tasks);
  for (PreparedTask& task : tasks) {
    at.task = task.config->task;
    ++at.task_number;
    const int64_t num_cut = encoder.num_cut();
    const auto answers =
        answer_task(*task.config, task.requests, answerer, eos_ids, [&](int64_t done, int64_t of) {
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
    TaskScores scores = score_task(task.config, task.requests, answers, scoring);
    if (const int64_t num = scores.num_without_right_choice; num > 0) {
      note(
          fmt::format("task {}: the target of {} of {} documents is none of their choices: they "
                      "count as wrong; is doc_to_target right?",
                      at.task, num, scores.num_evaluated));
    }
    scores.num_documents = task.num_documents;
    scores.num_fewshot = task.num_fewshot;
    evaluation.tasks.push_back(std::move(scores));
  }
  evaluation.groups = score_groups(asked, evaluation.tasks);
  return evaluation;
}

}  // namespace skein
