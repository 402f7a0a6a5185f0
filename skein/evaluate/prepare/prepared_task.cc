#include "skein/evaluate/prepare/prepared_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/units.h"
#include "skein/evaluate/documents/dataset.h"
#include "skein/evaluate/prepare/generation_settings.h"
#include "skein/evaluate/requests/written_requests.h"
#include "skein/evaluate/results/sample_line.h"
#include "skein/evaluate/tasks/config_dict.h"

namespace skein {
namespace {

// Of pieces of text, each with its length.
class Digest {
 public:
  void add(const std::string& text) {
    const auto size = static_cast<uint64_t>(text.size());
    stream_.update(std::as_bytes(std::span(&size, 1)));
    stream_.update(std::as_bytes(std::span(text)));
  }
  void add(const jinja::Value& value) { add(python_json(value)); }
  void add(const std::vector<jinja::Value>& values) {
    for (const jinja::Value& value : values) add(value);
  }
  std::string hex() const { return stream_.hex(); }

 private:
  Xxh3Stream stream_;
};

std::string digest_of(const std::vector<DocumentRequests>& written) {
  Digest digest;
  for (const DocumentRequests& document : written) {
    for (const EvaluationRequest& request : document.requests) {
      digest.add(request.context);
      digest.add(request.continuation);
    }
    digest.add(document.target);
  }
  return digest.hex();
}

}  // namespace

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
    std::string digest = digest_of(written);
    return {std::move(config), std::nullopt, std::move(written),
            num_documents,     num_fewshot,  std::move(digest)};
  }
  const Dataset dataset({config->dataset_path, config->dataset_name, config->dataset_kwargs},
                        data_folders);
  Documents tested = dataset.split(tested_split(*config));
  const int64_t num_fewshot = num_few_shot(*config, options);
  std::vector<jinja::Value> examples;
  if (num_fewshot > 0) {
    if (const auto split = few_shot_split(*config)) {
      try {
        examples = dataset.split(*split).rows;
      } catch (const Error& error) {
        fail(error.code(), "{}; {} come from there", error.what(),
             counted(num_fewshot, "example of each context", "examples of each context"));
      }
    }
  }
  Digest digest;
  digest.add(config_dict(*config));
  digest.add(tested.rows);
  digest.add(examples);
  const auto num_documents = std::ssize(tested.rows);
  TaskRequests requests(*config, std::move(tested.rows), std::move(examples), options);
  return {std::move(config), std::move(requests), {}, num_documents, num_fewshot, digest.hex()};
}

std::vector<PreparedTask> prepare_tasks(const std::vector<TaskNode>& asked,
                                        const std::vector<std::filesystem::path>& data_folders,
                                        const RequestOptions& options) {
  std::vector<PreparedTask> tasks;
  std::optional<Error> missing;
  std::vector<std::string> others;  // tasks after it that lack their data
  for (const auto& config : tasks_of(asked)) {
    try {
      tasks.push_back(prepare_task(config, data_folders, options));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      if (missing) {
        others.push_back(config->task);
      } else {
        missing.emplace(error.code(), fmt::format("task {}: {}", config->task, error.what()));
      }
    }
  }
  if (!missing) return tasks;
  if (others.empty()) throw Error(*missing);
  constexpr size_t kShown = 10;
  const auto shown = std::span(others).first(std::min(kShown, others.size()));
  fail(ErrorCode::kNotFound, "{}. Data are missing for {} more: {}{}", missing->what(),
       counted(std::ssize(others), "task"), fmt::join(shown, ", "),
       others.size() > kShown ? ", …" : "");
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
  scores.digest = task.digest;
  return scores;
}

}  // namespace skein
