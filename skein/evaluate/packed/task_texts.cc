#include "skein/evaluate/packed/task_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/evaluate/metrics/metric.h"

namespace skein {
namespace {

// The metrics that need to know whether an answer is the likeliest text.
std::vector<std::string> metrics_left_out(const TaskConfig& task) {
  const bool is_choice = task.output_type == OutputType::kMultipleChoice;
  const std::string_view name = is_choice ? "exact_match" : "acc";
  const bool has_such = is_choice || task.output_type == OutputType::kLoglikelihood;
  std::vector<std::string> left_out;
  bool is_any_left = false;
  for (const ScoredMetric& metric : make_metrics(task.metrics, task.output_type)) {
    if (has_such && metric.name == name) {
      left_out.push_back(metric.name);
    } else {
      is_any_left = true;
    }
  }
  if (is_any_left) return left_out;
  fail(ErrorCode::kUnsupported,
       "task {}: {} needs to know whether an answer is the likeliest text, which an evaluation in "
       "training does not compute: ask `skein eval RUN --tasks {}`",
       task.task, name, task.task);
}

void check_type(const TaskConfig& task) {
  if (task.output_type != OutputType::kGenerateUntil) return;
  fail(ErrorCode::kUnsupported,
       "task {} generates text, which an evaluation in training does not: ask `skein eval RUN "
       "--tasks {}`",
       task.task, task.task);
}

}  // namespace

TaskTexts::TaskTexts(const std::vector<TaskNode>& asked,
                     const std::vector<std::filesystem::path>& data_folders,
                     const RequestOptions& options, TextEncoder& encoder)
    : nodes_(asked) {
  const int64_t num_cut = encoder.num_cut();
  for (const auto& config : tasks_of(asked)) check_type(*config);
  for (PreparedTask& task : prepare_tasks(asked, data_folders, options)) {
    Asked& one = asked_.emplace_back(Asked{std::move(task), {}, {}, {}});
    one.left_out = metrics_left_out(*one.task.config);
    for (const std::string& metric : one.left_out) {
      left_out_.push_back(fmt::format("{}: {}", one.task.config->task, metric));
    }
    one.documents = ask_all(one.task);
    encode(one, encoder);
  }
  num_cut_ = encoder.num_cut() - num_cut;
}

void TaskTexts::encode(Asked& asked, TextEncoder& encoder) {
  for (DocumentAnswers& document : asked.documents) {
    heartbeat::tick();
    for (EvaluationRequest& request : document.asked.requests) {
      if (request.kind == EvaluationRequest::Kind::kRolling) {
        std::vector<EncodedText> pieces = encoder.rolling(request.continuation);
        asked.num_texts.push_back(std::ssize(pieces));
        std::move(pieces.begin(), pieces.end(), std::back_inserter(texts_));
      } else {
        texts_.push_back(encoder.pair(request.context, request.continuation));
        asked.num_texts.push_back(1);
      }
      request.context = {};
      request.continuation = {};
    }
    document.asked.contexts = {};
  }
}

std::vector<std::string> TaskTexts::names() const {
  std::vector<std::string> names;
  for (const Asked& asked : asked_) names.push_back(asked.task.config->task);
  return names;
}

int64_t TaskTexts::num_documents() const {
  int64_t count = 0;
  for (const Asked& asked : asked_) count += std::ssize(asked.documents);
  return count;
}

Evaluation TaskTexts::score(std::span<const double> logprobs, const ScoringOptions& options,
                            const std::function<void(const std::string&)>& note) {
  Evaluation evaluation;
  evaluation.asked = nodes_;
  size_t text = 0;
  for (Asked& asked : asked_) {
    size_t request = 0;
    for (DocumentAnswers& document : asked.documents) {
      document.scored.assign(document.asked.requests.size(), {.logprob = 0, .is_greedy = false});
      for (ScoredAnswer& answer : document.scored) {
        for (int64_t left = asked.num_texts[request++]; left > 0; --left) {
          answer.logprob += logprobs[text++];
        }
      }
    }
    TaskScores scores = score_prepared(asked.task, asked.documents, options, note);
    std::erase_if(scores.scores, [&](const TaskMetric& metric) {
      return std::ranges::find(asked.left_out, metric.metric) != asked.left_out.end();
    });
    evaluation.tasks.push_back(std::move(scores));
  }
  evaluation.groups = score_groups(nodes_, evaluation.tasks);
  return evaluation;
}

}  // namespace skein
