#include "skein/evaluate/results/code_scores.h"

#include <algorithm>
#include <iterator>

#include "skein/base/error.h"
#include "skein/evaluate/execution/pass_at_k.h"
#include "skein/evaluate/requests/answers.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

// The programs of a document: of a filter that takes one answer, that alone.
std::vector<std::string> programs_of(const Value& answer, const Value& target) {
  const bool is_one = answer.is_string();
  if (!is_one && !answer.is(Kind::kSequence)) {
    fail(ErrorCode::kInvalid, "the filter gives a {}: expected a program, or a list of them",
         jinja::type_name(answer));
  }
  if (is_list(target)) {
    fail(ErrorCode::kUnsupported,
         "doc_to_target gives a list: expected one text, which tests the program");
  }
  if (!is_one && !target.is_string()) {
    fail(ErrorCode::kInvalid, "doc_to_target gives a {}: expected the text of a test",
         jinja::type_name(target));
  }
  std::vector<std::string> programs;
  for (const Value& one : is_one ? std::vector<Value>{answer} : answer.as_sequence().items) {
    if (!one.is_string()) {
      fail(ErrorCode::kInvalid, "the filter gives a list with a {}: expected programs",
           jinja::type_name(one));
    }
    programs.push_back(one.text() + "\n" + shown(target));
  }
  return programs;
}

// The first that looks at them names the task.
std::vector<ScoredMetric> metrics_of(const TaskConfig& task) try {
  return make_metrics(task.metrics, task.output_type);
} catch (const Error& error) {
  fail(error.code(), "task {}: {}", task.task, error.what());
}

}  // namespace

bool runs_programs(const TaskConfig& task) {
  const std::vector<ScoredMetric> metrics = metrics_of(task);
  const auto num_of_code = std::count_if(
      metrics.begin(), metrics.end(), [](const auto& metric) { return metric.code.has_value(); });
  if (num_of_code > 0 && num_of_code < std::ssize(metrics)) {
    fail(ErrorCode::kUnsupported,
         "task {}: metric_list: some metrics run the answers as programs, and some do not: "
         "expected one kind",
         task.task);
  }
  return num_of_code > 0;
}

std::vector<std::vector<ProgramResult>> run_answers(const std::vector<DocumentAnswers>& documents,
                                                    const std::vector<Value>& answers,
                                                    const PythonSandbox& sandbox, int num_threads) {
  std::vector<std::string> programs;
  std::vector<size_t> counts;
  for (size_t i = 0; i < documents.size(); ++i) {
    std::vector<std::string> of_document = programs_of(answers[i], documents[i].asked.target);
    counts.push_back(of_document.size());
    std::move(of_document.begin(), of_document.end(), std::back_inserter(programs));
  }
  std::vector<ProgramResult> results = sandbox.run_all(programs, num_threads);
  std::vector<std::vector<ProgramResult>> by_document;
  auto next = std::make_move_iterator(results.begin());
  for (const size_t count : counts) {
    by_document.emplace_back(next, next + static_cast<ptrdiff_t>(count));
    next += static_cast<ptrdiff_t>(count);
  }
  return by_document;
}

std::vector<MetricScore> score_programs(const std::vector<ProgramResult>& results,
                                        const std::vector<ScoredMetric>& metrics) {
  const int64_t num_samples = std::ssize(results);
  const auto num_right = std::count_if(results.begin(), results.end(), [](const auto& result) {
    return result.verdict == ProgramVerdict::kPassed;
  });
  std::vector<MetricScore> scores;
  for (const ScoredMetric& metric : metrics) {
    for (const CodeMetric::Score& score : metric.code->scores) {
      if (score.k > num_samples) {
        fail(ErrorCode::kInvalid,
             "the metric {}: {} needs {} answers to a document, and there are {}: set `repeats` of "
             "the task, or a smaller k",
             metric.name, score.name, score.k, num_samples);
      }
      scores.push_back({score.name, pass_at_k(num_samples, num_right, score.k)});
    }
  }
  return scores;
}

}  // namespace skein
