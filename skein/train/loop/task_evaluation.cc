#include "skein/train/loop/task_evaluation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <set>
#include <utility>

#include "skein/base/machine/clock.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/compile/parallel.h"
#include "skein/evaluate/packed/evaluate_table.h"
#include "skein/model/decoder.h"
#include "skein/train/loop/in_step.h"
#include "skein/train/start/consensus.h"

namespace skein {
namespace {

constexpr int64_t kBootstrapRounds = 1000;  // a hundredth of those of `skein eval`

bool is_due_at(const EvaluateConfig& config, int64_t step) {
  return config.every_steps > 0 && step > 0 && step % config.every_steps == 0;
}

// Of what was asked: tasks, and groups; of a group without a mean, its parts.
void add_scores(const TaskNode& node, const Evaluation& evaluation,
                std::vector<EvaluatedScore>& scores) {
  const auto add = [&](const std::vector<TaskMetric>& metrics, int64_t num_evaluated,
                       std::optional<int64_t> num_fewshot) {
    for (const TaskMetric& metric : metrics) {
      scores.push_back({node.name(), metric.shown_name(), metric.value, metric.error, num_evaluated,
                        num_fewshot, metric.higher_is_better});
    }
  };
  for (const TaskScores& task : evaluation.tasks) {
    if (node.task && task.task->task == node.name()) {
      return add(task.scores, task.num_evaluated, task.num_fewshot);
    }
  }
  for (const GroupScores& group : evaluation.groups) {
    if (!node.group || group.group->name != node.name()) continue;
    if (!group.scores.empty()) return add(group.scores, group.num_evaluated, std::nullopt);
    for (const TaskNode& child : group.group->children) add_scores(child, evaluation, scores);
  }
}

std::vector<EvaluatedScore> shown_scores(const Evaluation& evaluation) {
  std::vector<EvaluatedScore> scores;
  for (const TaskNode& node : evaluation.asked) add_scores(node, evaluation, scores);
  return scores;
}

// score_from, the number of tokens, and the tokens, of each text.
std::string as_words(const std::vector<EncodedText>& texts) {
  std::vector<int32_t> words;
  for (const EncodedText& text : texts) {
    words.push_back(static_cast<int32_t>(text.score_from));
    words.push_back(static_cast<int32_t>(text.tokens.size()));
    words.insert(words.end(), text.tokens.begin(), text.tokens.end());
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(int32_t)};
}

std::vector<EncodedText> from_words(const std::string& bytes) {
  std::vector<int32_t> words(bytes.size() / sizeof(int32_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(int32_t));
  std::vector<EncodedText> texts;
  for (size_t at = 0; at < words.size();) {
    const auto tokens = words.begin() + static_cast<int64_t>(at) + 2;
    const int32_t count = words[at + 1];
    texts.push_back({{tokens, tokens + count}, words[at]});
    at += 2 + static_cast<size_t>(count);
  }
  return texts;
}

}  // namespace

void TaskEvaluation::prepare(bool tells) {
  const std::vector<bool> are_missing = missing();
  const bool has_all_steps = run_.beginning.step() >= run_.config.run.steps;
  for (size_t i = 0; i < run_.config.evaluate.size(); ++i) {
    if (has_all_steps && !are_missing[i]) continue;
    tables_.push_back(prepared(run_.config.evaluate[i], tells));
    tables_.back().is_missing = are_missing[i];
    if (tells) tell(tables_.back());
  }
  if (run_.is_first()) refuse_tasks_in_two_tables();
}

// As rank 0 finds in the events of the run.
std::vector<bool> TaskEvaluation::missing() const {
  const std::vector<EvaluateConfig>& configs = run_.config.evaluate;
  const int64_t step = run_.beginning.step();
  std::vector<double> are_missing(configs.size());
  if (run_.is_first() && step > 0) {
    for (size_t i = 0; i < configs.size(); ++i) {
      const bool is_wanted = is_due_at(configs[i], step) || step >= run_.config.run.steps;
      are_missing[i] = is_wanted && !run_.log->has_evaluation(step, configs[i].tasks) ? 1 : 0;
    }
  }
  if (!configs.empty()) sum_over_ranks(run_.world, are_missing);
  return {are_missing.begin(), are_missing.end()};
}

// Their scores have one name in the events, TensorBoard and reports.
void TaskEvaluation::refuse_tasks_in_two_tables() const {
  std::set<std::string> names;
  for (const Table& table : tables_) {
    for (const std::string& name : table.tasks->names()) {
      if (names.insert(name).second) continue;
      fail(ErrorCode::kUsage,
           "the task {} is in two tables [[evaluate]]: expected it in one; `skein eval` asks it in "
           "other ways",
           name);
    }
  }
}

bool TaskEvaluation::is_any_missing() const {
  return std::ranges::any_of(tables_, [](const Table& table) { return table.is_missing; });
}

void TaskEvaluation::make_up_for_missing(int64_t step) {
  for (Table& table : tables_) {
    if (std::exchange(table.is_missing, false)) evaluate(table, step);
  }
  if (step >= run_.config.run.steps) tables_.clear();  // all that there was to do
}

TaskEvaluation::Table TaskEvaluation::prepared(const EvaluateConfig& config, bool tells) const {
  std::optional<TaskTexts> tasks;
  std::string words;
  const int64_t length = run_.config.data.sequence_length;
  const auto warn = [&](const std::string& note) {
    if (tells) log::warn("{}", note);
  };
  if (run_.is_first()) {
    tasks.emplace(read_evaluate_table(config, run_.inputs.tokenizer(), length, warn));
    std::vector<EncodedText> texts = tasks->take_texts();
    // What cannot be scored is found now.
    tasks->score(std::vector<double>(texts.size()), {.bootstrap_rounds = 1}, warn);
    words = as_words(texts);
    if (words.size() > INT32_MAX) {
      fail(ErrorCode::kUnsupported,
           "evaluate.tasks = {}: {} tokens are more than ranks can be told: set evaluate.limit",
           config.tasks, words.size() / sizeof(int32_t));
    }
  }
  PackedTexts texts(from_words(text_of_rank_0(run_.world, words)), length,
                    run_.config.data.document_mask);
  return {config, std::move(tasks), std::move(texts)};
}

int64_t TaskEvaluation::num_batches(const Table& table) const {
  return ceil_div(table.texts.num_rows(), run_.config.batch.global_sequences);
}

void TaskEvaluation::tell(const Table& table) const {
  const int64_t length = run_.config.data.sequence_length;
  const int64_t rows = num_batches(table) * run_.config.batch.global_sequences;
  const double flops = training_flops_per_token(run_.inputs.model(), length) / 3;  // forward
  const int64_t every = table.config.every_steps;
  log::info(
      "evaluation {}: {}, {} in {} of {} tokens, in {}; at least {} each time "
      "(at the rate of large products)",
      every == 0 ? "at the end" : fmt::format("every {} steps and at the end", every),
      table.config.tasks, counted(table.tasks->num_documents(), "document"),
      counted(table.texts.num_texts(), "text"),
      format_count(static_cast<double>(table.texts.num_tokens())), counted(rows, "row"),
      format_short_duration(flops * static_cast<double>(rows * length) / run_.ceiling_flops));
}

bool TaskEvaluation::is_due(int64_t step) const {
  return std::ranges::any_of(tables_,
                             [&](const Table& table) { return is_due_at(table.config, step); });
}

void TaskEvaluation::evaluate(int64_t step, bool those_due) {
  for (Table& table : tables_) {
    if (is_due_at(table.config, step) == those_due) evaluate(table, step);
  }
}

void TaskEvaluation::evaluate_at_end(int64_t step, bool with_due) {
  if (with_due) evaluate(step, true);
  evaluate(step, false);
}

void TaskEvaluation::evaluate(Table& table, int64_t step) {
  const auto start = Clock::now();
  const std::vector<double> answers = logprobs(table, step);
  if (!run_.log) return;
  const Evaluation evaluation = table.tasks->score(answers, {.bootstrap_rounds = kBootstrapRounds},
                                                   [](const std::string& /*note*/) {});
  run_.log->evaluation(step, table.config.tasks, shown_scores(evaluation), seconds_since(start));
}

std::vector<double> TaskEvaluation::logprobs(const Table& table, int64_t step) {
  const RowShare share = rows_of(run_.layout);
  const int64_t sequences = run_.config.batch.global_sequences;
  const int64_t length = run_.config.data.sequence_length;
  Batch batch(0, share.rows(sequences), length);
  std::vector<double> sums(static_cast<size_t>(table.texts.num_texts()));
  for (int64_t i = 0; i < num_batches(table); ++i) {
    const int64_t first = i * sequences + share.first_row(sequences);
    table.texts.fill(first, batch);
    StepRunner::LossSum ignored;
    in_step(step, *run_.device, [&] {
      runner_.evaluate(batch, ignored, [&](int64_t at, float loss) {
        const int64_t text = table.texts.text_at(first + at / length, at % length);
        sums[static_cast<size_t>(text)] -= static_cast<double>(loss);
      });
    });
  }
  sum_over_ranks(run_.world, sums);
  return sums;
}

}  // namespace skein
