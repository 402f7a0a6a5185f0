#include "skein/evaluate/tasks/task_group.h"

#include <unordered_map>

namespace skein {
namespace {

// Items in the order in which their names came first, each the last of its name.
template <typename Item>
class Named {
 public:
  void add(const std::string& name, const Item& item) {
    const auto [place, is_new] = places_.try_emplace(name, items.size());
    if (is_new) items.push_back(item);
    items[place->second] = item;
  }
  std::vector<Item> items;

 private:
  std::unordered_map<std::string, size_t> places_;
};

using NamedTasks = Named<std::shared_ptr<const TaskConfig>>;
using NamedGroups = Named<std::shared_ptr<const TaskGroup>>;

void add_tasks(const std::vector<TaskNode>& nodes, NamedTasks& tasks) {
  for (const TaskNode& node : nodes) {
    if (node.task != nullptr) tasks.add(node.task->task, node.task);
    if (node.group != nullptr) add_tasks(node.group->children, tasks);
  }
}

void add_groups(const std::vector<TaskNode>& nodes, NamedGroups& groups) {
  for (const TaskNode& node : nodes) {
    if (node.group == nullptr) continue;
    groups.add(node.group->name, node.group);
    add_groups(node.group->children, groups);
  }
}

}  // namespace

const std::string& TaskNode::name() const { return task != nullptr ? task->task : group->name; }

std::vector<std::string> TaskGroup::child_names() const {
  std::vector<std::string> names;
  for (const TaskNode& child : children) names.push_back(child.name());
  return names;
}

std::vector<std::shared_ptr<const TaskConfig>> tasks_of(const std::vector<TaskNode>& nodes) {
  NamedTasks tasks;
  add_tasks(nodes, tasks);
  return std::move(tasks.items);
}

std::vector<std::shared_ptr<const TaskGroup>> groups_of(const std::vector<TaskNode>& nodes) {
  NamedGroups groups;
  add_groups(nodes, groups);
  return std::move(groups.items);
}

}  // namespace skein
