#include "skein/record/files/evaluated_score.h"

#include <cmath>
#include <utility>

#include "skein/record/files/event_fields.h"

namespace skein {

OrderedJson scores_to_json(const std::vector<EvaluatedScore>& scores) {
  OrderedJson list = OrderedJson::array();
  for (const EvaluatedScore& score : scores) {
    OrderedJson json = {{"task", score.task}, {"metric", score.metric}};
    json["value"] = std::isfinite(score.value) ? OrderedJson(score.value) : OrderedJson();
    if (score.error && std::isfinite(*score.error)) json["stderr"] = *score.error;
    if (score.num_documents) json["documents"] = *score.num_documents;
    if (score.num_fewshot) json["num_fewshot"] = *score.num_fewshot;
    if (score.higher_is_better) json["higher_is_better"] = *score.higher_is_better;
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<EvaluatedScore> scores_of_event(const Json& event) {
  std::vector<EvaluatedScore> scores;
  const auto list = event.find("scores");
  if (list == event.end() || !list->is_array()) return scores;
  for (const Json& json : *list) {
    if (!json.is_object()) continue;
    EvaluatedScore score;
    score.task = text_or(json, "task", "");
    score.metric = text_or(json, "metric", "");
    score.value = number_or(json, "value", std::nan(""));
    if (json.contains("stderr")) score.error = number_or(json, "stderr", std::nan(""));
    const auto whole = [&](const char* key) -> std::optional<int64_t> {
      if (!json.contains(key) || !json.at(key).is_number_integer()) return std::nullopt;
      return json.at(key).get<int64_t>();
    };
    score.num_documents = whole("documents");
    score.num_fewshot = whole("num_fewshot");
    if (json.contains("higher_is_better")) {
      score.higher_is_better = bool_or(json, "higher_is_better", true);
    }
    if (!score.task.empty() && !score.metric.empty()) scores.push_back(std::move(score));
  }
  return scores;
}

}  // namespace skein
