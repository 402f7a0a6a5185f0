#include "skein/evaluate/prepare/prepared_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "skein/base/error.h"
#include "skein/evaluate/documents/dataset.h"
#include "skein/evaluate/prepare/generation_settings.h"
#include "skein/evaluate/requests/written_requests.h"

namespace skein {

PreparedTask prepare_task(std::shared_ptr<const TaskConfig> config,
                          const std::vector<std::filesystem::path>& data_folders,
                          const RequestOptions& options) {
  check_scoring(*config);
  if (config->output_type == OutputType::kGenerateUntil) generation_settings(*config);
  if (!config->request_file.empty()) {
    if (options.num_fewshot || options.chat_template || !options.system_instruction.empty()) {
      fail(ErrorCode::kUsage,
           "task {}: its requests are written out already: expected no number of examples, chat "
           "template and system instruction",
           config->task);
    }
    std::vector<DocumentRequests> written = read_requests(config->request_file);
    const auto num_documents = std::ssize(written);
    const auto kept = written.begin() + limited(num_documents, options.limit);
    written.erase(kept, written.end());
    const int64_t num_fewshot = config->num_fewshot.value_or(0);
    return {std::move(config), std::nullopt, std::move(written), num_documents, num_fewshot};
  }
  const Dataset dataset({config->dataset_path, config->dataset_name, config->dataset_kwargs},
                        data_folders);
  Documents tested = dataset.split(tested_split(*config));
  const int64_t num_fewshot = num_few_shot(*config, options);
  std::vector<jinja::Value> examples;
  if (num_fewshot > 0) {
    if (const auto split = few_shot_split(*config)) examples = dataset.split(*split).rows;
  }
  const auto num_documents = std::ssize(tested.rows);
  TaskRequests requests(*config, std::move(tested.rows), std::move(examples), options);
  return {std::move(config), std::move(requests), {}, num_documents, num_fewshot};
}

std::vector<DocumentAnswers> ask_all(PreparedTask& task) {
  std::vector<DocumentAnswers> documents;
  for (DocumentRequests& asked : task.written) documents.push_back({std::move(asked), {}, {}});
  if (!task.requests) return documents;
  while (std::optional<DocumentRequests> asked = task.requests->next()) {
    documents.push_back({std::move(*asked), {}, {}});
  }
  return documents;
}

TaskScores score_prepared(const PreparedTask& task, const std::vector<DocumentAnswers>& documents,
                          const ScoringOptions& options,
                          const std::function<void(const std::string&)>& note) {
  const RequestsForm form = task.requests ? task.requests->form() : RequestsForm{};
  TaskScores scores = score_task(task.config, form, documents, options);
  if (const int64_t num = scores.num_without_right_choice; num > 0) {
    note(
        fmt::format("task {}: the target of {} of {} documents is none of their choices: they "
                    "count as wrong; is doc_to_target right?",
                    task.config->task, num, scores.num_evaluated));
  }
  const bool is_choice = std::ranges::any_of(
      documents, [](const DocumentAnswers& document) { return document.asked.choices.size() > 1; });
  if (!task.config->request_file.empty() && !is_choice) {  // the only choice is always right
    std::erase_if(scores.scores,
                  [](const TaskMetric& score) { return score.metric != "gold_bits_per_byte"; });
  }
  scores.num_documents = task.num_documents;
  scores.num_fewshot = task.num_fewshot;
  return scores;
}

}  // namespace skein
