// What an evaluation found: the scores of tasks and of groups.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/evaluate/tasks/task_group.h"

namespace skein {

struct TaskMetric {
  std::string metric, filter;  // "acc", "none"
  double value = 0;
  std::optional<double> error;  // standard error of the value; nothing: it has none
  std::optional<bool> higher_is_better;

  // "acc", or "exact_match,strict-match" where the filter is not "none".
  std::string shown_name() const { return filter == "none" ? metric : metric + "," + filter; }
};

struct TaskScores {
  std::shared_ptr<const TaskConfig> task;
  int64_t num_fewshot = 0;
  int64_t num_documents = 0;  // of the split
  int64_t num_evaluated = 0;
  std::string digest;                    // of its configuration and documents
  int64_t num_without_right_choice = 0;  // documents whose target is none of their choices
  std::vector<TaskMetric> scores;
  std::vector<std::string> samples;  // lines of JSON, if they were asked for
};

struct GroupScores {
  std::shared_ptr<const TaskGroup> group;
  int64_t num_evaluated = 0;
  std::vector<TaskMetric> scores;  // empty: the group has no mean
};

struct Evaluation {
  std::vector<TaskNode> asked;  // as they were asked for, in order
  std::vector<TaskScores> tasks;
  std::vector<GroupScores> groups;  // each before those inside it
};

}  // namespace skein
