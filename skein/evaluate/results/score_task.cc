#include "skein/evaluate/results/score_task.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "skein/base/error.h"
#include "skein/evaluate/metrics/aggregate.h"
#include "skein/evaluate/metrics/answer_filters.h"
#include "skein/evaluate/metrics/document_scores.h"
#include "skein/evaluate/metrics/metric.h"
#include "skein/evaluate/requests/answers.h"
#include "skein/evaluate/results/code_scores.h"
#include "skein/evaluate/results/sample_line.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

std::vector<AnswerFilter> filters_of(const TaskConfig& task) {
  std::vector<AnswerFilter> filters;
  for (const FilterConfig& config : task.filters) filters.emplace_back(config);
  if (filters.empty()) filters.push_back(AnswerFilter::take_first());
  return filters;
}

bool generates(const TaskConfig& task) { return task.output_type == OutputType::kGenerateUntil; }

// The share of probability of the true answers, which come first (truthfulqa_mc2).
std::vector<MetricScore> score_true_probability(const DocumentAnswers& document) {
  const Value* targets = document.asked.values.as_dict().find("mc2_targets");
  const Value* labels =
      targets != nullptr && targets->is(Kind::kDict) ? targets->as_dict().find("labels") : nullptr;
  if (labels == nullptr || !labels->is(Kind::kSequence) ||
      labels->as_sequence().items.size() != document.scored.size()) {
    fail(ErrorCode::kInvalid, "mc2_targets.labels: expected a label for each choice");
  }
  double of_true = 0, of_all = 0;
  bool is_true_part = true;
  for (size_t i = 0; i < document.scored.size(); ++i) {
    const Value& label = labels->as_sequence().items[i];
    is_true_part = is_true_part && !(label.is_integer() && label.as_integer() == 0);
    const double probability = std::exp(document.scored[i].logprob);
    of_all += probability;
    if (is_true_part) of_true += probability;
  }
  return {{"acc", of_true / of_all}};
}

class TaskScorer {
 public:
  TaskScorer(const TaskConfig& task, const RequestsForm& form)
      : task_(task), form_(form), metrics_(make_metrics(task.metrics, task.output_type)) {}

  const std::vector<ScoredMetric>& metrics() const { return metrics_; }
  int64_t num_without_right_choice() const { return num_without_right_choice_; }

  // `answer`: of a text that was generated, what the filter made of it.
  std::vector<MetricScore> scores_of(const DocumentAnswers& document, const Value& answer) {
    const DocumentRequests& asked = document.asked;
    if (form_.results == ResultsFunction::kTrueProbability) {
      return score_true_probability(document);
    }
    switch (task_.output_type) {
      case OutputType::kMultipleChoice:
        return choice_scores(document);
      case OutputType::kLoglikelihood:
        return score_loglikelihood(document.scored.at(0).logprob, document.scored.at(0).is_greedy,
                                   metrics_);
      case OutputType::kRolling:
        return score_rolling(document.scored.at(0).logprob, asked.counted_text, metrics_);
      case OutputType::kGenerateUntil:
        break;
    }
    GeneratedAnswer generated;
    generated.answer = answer;
    generated.target = asked.target;
    if (is_given(task_.doc_to_choice)) {
      std::vector<Value> choices;
      for (const std::string& choice : asked.choices) choices.push_back(Value::string(choice));
      generated.choices = Value::list(std::move(choices));
    }
    generated.has_several_targets = form_.has_multiple_targets;
    return score_generated(generated, metrics_);
  }

 private:
  std::vector<MetricScore> choice_scores(const DocumentAnswers& document) {
    MultipleChoiceAnswer answer;
    for (const ScoredAnswer& scored : document.scored) {
      answer.loglikelihoods.push_back(scored.logprob);
      answer.is_greedy.push_back(scored.is_greedy);
    }
    answer.choices = document.asked.choices;
    answer.target = form_.has_multiple_inputs ? document.asked.text : document.asked.target;
    answer.has_several_targets = form_.has_multiple_targets;
    MultipleChoiceScores scored = score_multiple_choice(answer, metrics_);
    num_without_right_choice_ += !scored.is_target_a_choice;
    return std::move(scored.scores);
  }

  const TaskConfig& task_;
  const RequestsForm form_;
  const std::vector<ScoredMetric> metrics_;
  int64_t num_without_right_choice_ = 0;
};

// [document]: a list of its samples, or an undefined value.
std::vector<Value> samples_of(const std::vector<DocumentAnswers>& documents) {
  std::vector<Value> samples;
  for (const DocumentAnswers& document : documents) {
    std::vector<Value> texts;
    for (const std::string& text : document.texts.at(0)) texts.push_back(Value::string(text));
    samples.push_back(Value::list(std::move(texts)));
  }
  return samples;
}

// Whether a score of this name is of the metric.
bool gives(const ScoredMetric& metric, const std::string& score) {
  if (!metric.code) return metric.name == score;
  return std::any_of(metric.code->scores.begin(), metric.code->scores.end(),
                     [&](const CodeMetric::Score& one) { return one.name == score; });
}

void add_aggregates(const std::string& filter, const TaskScorer& scorer,
                    const std::vector<std::pair<std::string, std::vector<Score>>>& by_metric,
                    const ScoringOptions& options, TaskScores& made) {
  for (const auto& named : by_metric) {
    const auto metric =
        std::find_if(scorer.metrics().begin(), scorer.metrics().end(),
                     [&](const ScoredMetric& known) { return gives(known, named.first); });
    const bool is_known = metric != scorer.metrics().end();
    const Aggregate aggregate =
        aggregate_scores(named.first, is_known ? metric->aggregation : "mean", named.second,
                         options.bootstrap_rounds, options.num_threads);
    TaskMetric score = {named.first, filter, aggregate.value, aggregate.standard_error, {}};
    if (is_known) score.higher_is_better = metric->higher_is_better;
    made.scores.push_back(std::move(score));
  }
}

void append(const std::vector<MetricScore>& scores,
            std::vector<std::pair<std::string, std::vector<Score>>>& by_metric) {
  for (const MetricScore& score : scores) {
    auto found = std::find_if(by_metric.begin(), by_metric.end(),
                              [&](const auto& named) { return named.first == score.metric; });
    if (found == by_metric.end()) {
      by_metric.emplace_back(score.metric, std::vector<Score>());
      found = std::prev(by_metric.end());
    }
    found->second.push_back(score.score);
  }
}

const TaskScores* scores_named(const std::vector<TaskScores>& tasks, const std::string& name) {
  const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const TaskScores& scores) {
    return scores.task->task == name;
  });
  return found == tasks.end() ? nullptr : &*found;
}

// The mean of one metric under one filter; nothing if no task has it.
void add_group_metric(const AggregateMetric& wanted, const std::string& filter,
                      const std::vector<const TaskScores*>& tasks, GroupScores& made) {
  std::vector<TaskScore> parts;
  std::optional<bool> higher_is_better;
  for (const TaskScores* task : tasks) {
    for (const TaskMetric& score : task->scores) {
      if (score.metric != wanted.metric || score.filter != filter) continue;
      parts.push_back({score.value, score.error, task->num_evaluated});
      higher_is_better = score.higher_is_better;
    }
  }
  if (parts.empty()) return;
  const Aggregate mean = aggregate_group(parts, wanted.weight_by_size);
  made.scores.push_back({wanted.metric, filter, mean.value, mean.standard_error, higher_is_better});
}

// Each document has `repeats` answers.
void check_repeats(const TaskConfig& task) {
  for (const ScoredMetric& metric : make_metrics(task.metrics, task.output_type)) {
    for (const CodeMetric::Score& score : metric.code->scores) {
      if (score.k <= task.repeats) continue;
      fail(ErrorCode::kInvalid,
           "task {}: {} needs {} answers to a document, and repeats is {}: set `repeats`, or a "
           "smaller k",
           task.task, score.name, score.k, task.repeats);
    }
  }
}

}  // namespace

void check_scoring(const TaskConfig& task) {
  if (runs_programs(task)) check_repeats(task);
  filters_of(task);
  if (!generates(task) && !task.filters.empty()) {
    fail(ErrorCode::kUnsupported,
         "task {}: filter_list: expected none, since its answers are log-probabilities", task.task);
  }
}

TaskScores score_task(std::shared_ptr<const TaskConfig> task, const RequestsForm& form,
                      const std::vector<DocumentAnswers>& documents,
                      const ScoringOptions& options) {
  TaskScores made;
  made.num_evaluated = std::ssize(documents);
  TaskScorer scorer(*task, form);
  const bool is_code = runs_programs(*task);
  if (is_code && options.sandbox == nullptr) {
    fail(ErrorCode::kInternal, "task {}: there is no sandbox for its programs", task->task);
  }
  std::vector<Value> values;
  for (const DocumentAnswers& document : documents) values.push_back(document.asked.values);
  for (const AnswerFilter& filter : filters_of(*task)) {
    std::vector<Value> answers(documents.size());
    if (generates(*task)) answers = filter.apply(samples_of(documents), values);
    std::vector<std::vector<ProgramResult>> results(documents.size());
    if (is_code) results = run_answers(documents, answers, *options.sandbox, options.num_threads);
    std::vector<std::pair<std::string, std::vector<Score>>> by_metric;
    for (size_t i = 0; i < documents.size(); ++i) {
      const std::vector<MetricScore> scores = is_code ? score_programs(results[i], scorer.metrics())
                                                      : scorer.scores_of(documents[i], answers[i]);
      append(scores, by_metric);
      if (options.log_samples) {
        made.samples.push_back(
            sample_line(*task, documents[i], answers[i], filter.name(), scores, results[i]));
      }
    }
    add_aggregates(filter.name(), scorer, by_metric, options, made);
  }
  made.num_without_right_choice = scorer.num_without_right_choice();
  made.task = std::move(task);
  return made;
}

std::vector<GroupScores> score_groups(const std::vector<TaskNode>& asked,
                                      const std::vector<TaskScores>& tasks) {
  std::vector<GroupScores> groups;
  for (const auto& group : groups_of(asked)) {
    GroupScores& made = groups.emplace_back();
    made.group = group;
    std::vector<const TaskScores*> members;
    std::map<std::string, bool> filters;
    for (const auto& task : tasks_of(group->children)) {
      const TaskScores* scores = scores_named(tasks, task->task);
      if (scores == nullptr) continue;
      members.push_back(scores);
      made.num_evaluated += scores->num_evaluated;
      for (const TaskMetric& score : scores->scores) filters[score.filter] = true;
    }
    for (const AggregateMetric& metric : group->metrics) {
      std::vector<std::string> names;
      for (const auto& filter : filters) names.push_back(filter.first);
      for (const std::string& name : metric.filters.value_or(names)) {
        add_group_metric(metric, name, members, made);
      }
    }
  }
  return groups;
}

}  // namespace skein
