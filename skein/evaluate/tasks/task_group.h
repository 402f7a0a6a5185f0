// Groups of tasks, and how the scores of a group follow from those of its tasks.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/evaluate/tasks/task_config.h"

namespace skein {

// One of aggregate_metric_list: the mean of a metric over all tasks of the group.
struct AggregateMetric {
  std::string metric;
  std::optional<std::vector<std::string>> filters;  // nothing: all that the tasks have
  bool weight_by_size = true;                       // by the number of documents
};

struct TaskGroup;

// A task or a group: one of the two is set.
struct TaskNode {
  std::shared_ptr<const TaskConfig> task;
  std::shared_ptr<const TaskGroup> group;

  const std::string& name() const;
};

struct TaskGroup {
  std::filesystem::path file;  // that describes it
  std::string name, alias;     // alias: empty where the file has none
  std::vector<AggregateMetric> metrics;
  jinja::Value metadata;  // as of a task
  std::vector<TaskNode> children;

  // The names of direct children, in order.
  std::vector<std::string> child_names() const;
};

// All tasks of `nodes`, those of groups included, in order; a task with a name that came before is
// in the former one's place.
std::vector<std::shared_ptr<const TaskConfig>> tasks_of(const std::vector<TaskNode>& nodes);
// All groups of `nodes`, each before those inside it, likewise.
std::vector<std::shared_ptr<const TaskGroup>> groups_of(const std::vector<TaskNode>& nodes);

}  // namespace skein
