// A score of a task of evaluation, as events.jsonl, TensorBoard and reports have it.
//
// Format   of the event `evaluation`: docs/events_format.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

struct EvaluatedScore {
  std::string task;
  std::string metric;  // "acc", or "exact_match,strict-match" where the filter is not "none"
  double value = 0;
  std::optional<double> error;  // standard error
  std::optional<int64_t> num_documents, num_fewshot;
  std::optional<bool> higher_is_better;

  std::string name() const { return "eval." + task + "." + metric; }
};

// The list `scores` of the event, and what can be read of such a list.
OrderedJson scores_to_json(const std::vector<EvaluatedScore>& scores);
std::vector<EvaluatedScore> scores_of_event(const Json& event);

}  // namespace skein
