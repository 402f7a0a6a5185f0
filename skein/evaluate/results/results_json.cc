#include "skein/evaluate/results/results_json.h"

#include <fmt/chrono.h>

#include <cmath>
#include <functional>
#include <limits>

#include "skein/base/error.h"
#include "skein/evaluate/results/sample_line.h"
#include "skein/evaluate/tasks/config_dict.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

OrderedJson json_of(const Value& value) {
  if (value.is_undefined()) return nullptr;
  return OrderedJson::parse(python_json(value));
}

OrderedJson version_of(const Value& metadata) {
  const Value* version = metadata.is(Kind::kDict) ? metadata.as_dict().find("version") : nullptr;
  return version == nullptr ? OrderedJson() : json_of(*version);
}

// JSON has no infinity and no NaN.
OrderedJson number_of(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

OrderedJson scores_json(const std::string& name, const std::string& alias, int64_t num_evaluated,
                        const std::vector<TaskMetric>& scores) {
  OrderedJson json = {
      {"name", name}, {"alias", alias.empty() ? name : alias}, {"sample_len", num_evaluated}};
  for (const TaskMetric& score : scores) {
    json[score.metric + "," + score.filter] = number_of(score.value);
    json[score.metric + "_stderr," + score.filter] =
        score.error ? number_of(*score.error) : OrderedJson("N/A");
  }
  return json;
}

OrderedJson better_json(const std::vector<TaskMetric>& scores) {
  OrderedJson json = OrderedJson::object();
  for (const TaskMetric& score : scores) {
    json[score.metric] =
        score.higher_is_better ? OrderedJson(*score.higher_is_better) : OrderedJson();
  }
  return json;
}

OrderedJson configuration_of(const TaskScores& scores) {
  OrderedJson json = json_of(config_dict(*scores.task));
  json["num_fewshot"] = scores.num_fewshot;
  return json;
}

}  // namespace

OrderedJson results_json(const Evaluation& evaluation, const EvaluationRecord& record) {
  OrderedJson json;
  for (const char* key : {"results", "groups", "group_subtasks", "configs", "versions", "n-shot",
                          "higher_is_better", "n-samples"}) {
    json[key] = OrderedJson::object();
  }
  for (const TaskScores& task : evaluation.tasks) {
    const std::string& name = task.task->task;
    json["results"][name] = scores_json(name, task.task->alias, task.num_evaluated, task.scores);
    json["configs"][name] = configuration_of(task);
    json["versions"][name] = version_of(task.task->metadata);
    json["n-shot"][name] = task.num_fewshot;
    json["higher_is_better"][name] = better_json(task.scores);
    json["n-samples"][name] = {{"original", task.num_documents}, {"effective", task.num_evaluated}};
  }
  for (const GroupScores& group : evaluation.groups) {
    const std::string& name = group.group->name;
    json["group_subtasks"][name] = group.group->child_names();
    json["versions"][name] = version_of(group.group->metadata);
    json["results"][name] =
        scores_json(name, group.group->alias, group.num_evaluated, group.scores);
    if (!group.scores.empty()) json["groups"][name] = json["results"][name];
    json["higher_is_better"][name] = better_json(group.scores);
  }
  if (json["groups"].empty()) json.erase("groups");
  json["config"] = {{"model", "skein"},
                    {"model_args", record.model},
                    {"model_num_parameters", record.num_parameters},
                    {"model_dtype", record.precision},
                    {"device", record.device},
                    {"limit", record.limit},
                    {"bootstrap_iters", 100000},
                    {"fewshot_seed", record.fewshot_seed}};
  json["date"] = record.date;
  json["max_length"] = record.max_length;
  json["model_source"] = "skein";
  json["model_name"] = record.model;
  json["total_evaluation_time_seconds"] = fmt::format("{}", record.seconds);
  json["skein"] = record.version;
  if (!record.run.is_null()) json["skein"]["run"] = record.run;
  json["skein"]["asked"] = record.asked;
  return json;
}

std::string results_date(double seconds_since_1970) {
  const double whole = std::floor(seconds_since_1970);
  const auto micros = static_cast<int>((seconds_since_1970 - whole) * 1e6);
  const std::tm utc = fmt::gmtime(static_cast<std::time_t>(whole));
  return fmt::format("{:%Y-%m-%dT%H-%M-%S}.{:06}", utc, micros);
}

}  // namespace skein
