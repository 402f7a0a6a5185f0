#include "skein/record/report/compare/run_evaluations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "skein/base/ending.h"
#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/record/files/event_fields.h"

namespace skein {
namespace {

constexpr int kMostDepth = 4;
constexpr size_t kMostFiles = 1000;
constexpr int64_t kMostBytes = int64_t{64} << 20;

const Json& member(const Json& json, const char* key) {
  static const Json kNone = Json::object();
  const auto found = json.find(key);
  return found != json.end() && found->is_object() ? *found : kNone;
}

std::optional<int64_t> whole(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

// "acc,none" is the metric acc; "acc_stderr,none" its standard error.
void add_scores(const Json& json, const std::string& task, RunEvaluation& evaluation) {
  const Json& scores = json.at("results").at(task);
  if (!scores.is_object()) return;
  for (const auto& [key, value] : scores.items()) {
    const size_t comma = key.find(',');
    if (comma == std::string::npos || !value.is_number()) continue;
    const std::string metric = key.substr(0, comma), filter = key.substr(comma + 1);
    if (metric.ends_with("_stderr")) continue;
    EvaluatedScore score;
    score.task = task;
    score.metric = filter == "none" ? metric : key;
    score.value = value.get<double>();
    const auto error = scores.find(metric + "_stderr," + filter);
    if (error != scores.end() && error->is_number()) score.error = error->get<double>();
    score.num_documents = whole(member(member(json, "n-samples"), task.c_str()), "effective");
    if (!score.num_documents) score.num_documents = whole(scores, "sample_len");  // of a group
    score.num_fewshot = whole(member(json, "n-shot"), task);
    const Json& better = member(member(json, "higher_is_better"), task.c_str());
    const auto is_higher = better.find(metric);
    if (is_higher != better.end() && is_higher->is_boolean()) {
      score.higher_is_better = is_higher->get<bool>();
    }
    evaluation.scores.push_back(std::move(score));
  }
}

RunEvaluation read_results(const fs::path& path, const fs::path& run_dir) {
  const Json json = parse_json(read_file(path, kMostBytes), path.string());
  const auto results = json.is_object() ? json.find("results") : json.end();
  if (results == json.end() || !results->is_object()) {
    fail(ErrorCode::kInvalid, "{}: expected the results of an evaluation, an object \"results\"",
         path.string());
  }
  RunEvaluation evaluation;
  evaluation.file = path.lexically_relative(run_dir).string();
  evaluation.step = whole(member(member(json, "skein"), "run"), "step");
  evaluation.date = number_or(json, "date", 0);
  for (const auto& [task, unused] : results->items()) add_scores(json, task, evaluation);
  return evaluation;
}

// Files results_*.json, in order of their names. Links to folders are not followed.
std::vector<fs::path> result_files(const fs::path& folder, std::vector<std::string>& notes) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error), end;
  while (!error && entry != end) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("results_") && name.ends_with(".json")) files.push_back(entry->path());
    if (entry.depth() >= kMostDepth) entry.disable_recursion_pending();
    entry.increment(error);
  }
  if (error && fs::exists(folder)) {
    notes.push_back(fmt::format("{}: {}", folder.string(), error.message()));
  }
  std::sort(files.begin(), files.end());
  if (files.size() > kMostFiles) {
    notes.push_back(fmt::format("{} holds {} files of results: the last {} by name are read",
                                folder.string(), files.size(), kMostFiles));
    files.erase(files.begin(), files.end() - static_cast<std::ptrdiff_t>(kMostFiles));
  }
  return files;
}

void add_evaluations_in_training(const RunReport& report, RunEvaluations& evaluations) {
  std::map<int64_t, RunEvaluation> by_step;
  for (const RunReport::Evaluated& evaluated : report.evaluated) {
    RunEvaluation& evaluation = by_step[evaluated.step];
    evaluation.file = "training";
    evaluation.step = evaluated.step;
    evaluation.scores.push_back(evaluated.score);
  }
  for (auto& [step, evaluation] : by_step) evaluations.list.push_back(std::move(evaluation));
}

// A task that was asked of several numbers of documents, or with several numbers of examples, has
// several questions, whose scores are not of one curve. The one with the most documents, of equal
// ones the newest, keeps the name of the task; the others say theirs: "piqa (100 documents)".
void name_questions(std::vector<RunEvaluation>& list) {
  using Question = std::pair<std::optional<int64_t>, std::optional<int64_t>>;
  const auto question = [](const EvaluatedScore& score) {
    return Question(score.num_documents, score.num_fewshot);
  };
  std::map<std::string, Question> usual;
  for (const RunEvaluation& evaluation : list) {
    for (const EvaluatedScore& score : evaluation.scores) {
      const auto [found, is_new] = usual.try_emplace(score.task, question(score));
      if (!is_new && score.num_documents >= found->second.first) found->second = question(score);
    }
  }
  for (RunEvaluation& evaluation : list) {
    for (EvaluatedScore& score : evaluation.scores) {
      const Question& of_name = usual.at(score.task);
      std::vector<std::string> differs;
      if (score.num_documents && score.num_documents != of_name.first) {
        differs.push_back(counted(*score.num_documents, "document"));
      }
      if (score.num_fewshot && score.num_fewshot != of_name.second) {
        differs.push_back(fmt::format("{}-shot", *score.num_fewshot));
      }
      if (!differs.empty()) score.task += fmt::format(" ({})", fmt::join(differs, ", "));
    }
  }
}

}  // namespace

RunEvaluations read_evaluations(const RunReport& report) {
  const fs::path run_dir = report.run_dir;
  RunEvaluations evaluations;
  for (const fs::path& file : result_files(run_dir / "eval", evaluations.notes)) {
    Result<RunEvaluation> read = try_run([&] { return read_results(file, run_dir); });
    if (read.ok()) {
      evaluations.list.push_back(std::move(read.value()));
    } else {
      evaluations.notes.push_back(read.error().what() + std::string("; the file is left out"));
    }
  }
  add_evaluations_in_training(report, evaluations);
  std::stable_sort(evaluations.list.begin(), evaluations.list.end(),
                   [](const RunEvaluation& a, const RunEvaluation& b) {
                     return std::pair(a.step, a.date) < std::pair(b.step, b.date);
                   });
  name_questions(evaluations.list);
  return evaluations;
}

std::vector<EvaluatedScore> newest_scores(const RunEvaluations& evaluations) {
  std::map<std::string, EvaluatedScore> newest;
  for (const RunEvaluation& evaluation : evaluations.list) {
    for (const EvaluatedScore& score : evaluation.scores) newest[score.name()] = score;
  }
  std::vector<EvaluatedScore> scores;
  for (auto& [name, score] : newest) scores.push_back(std::move(score));
  return scores;
}

}  // namespace skein
