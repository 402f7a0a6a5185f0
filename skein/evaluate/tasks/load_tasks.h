// Tasks and groups by their names.
//
// A name is that of a task, a group or a tag of the index; a pattern (`mmlu_*`) for all names that
// it matches; or the path of a file *.yaml, or of requests (request_file.h). A tag means its tasks,
// sorted.
//
// A group's `task` lists names; a dict {task: NAME, key: value} sets keys of a task, or of all
// tasks of a group or a tag; {task: NAME, ...} with an unknown name is a new task, "GROUP::NAME",
// and {group: NAME, task: [...]} a new group. Other keys of a group set keys of all its tasks.
// Outer settings override a group's, and those of a dict override both.
//
// Difference  {task: GROUP, key: value} renames every task of GROUP to GROUP in
//             lm-evaluation-harness 0.4.13, so that one is left. Here they keep their names; so do
//             those of a tag
// Limits   50,000 tasks and groups in a load
// Errors   kNotFound for an unknown name, with the nearest; kInvalid for a task that is in two of
//          the requested names, and a group inside itself; those of read_task.h and task_file.h
// Source   lm-evaluation-harness 0.4.13, tasks/manager.py, _factory.py, config/group.py
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "skein/evaluate/tasks/task_file.h"
#include "skein/evaluate/tasks/task_group.h"
#include "skein/evaluate/tasks/task_index.h"

namespace skein {

class TaskLoader {
 public:
  // `index` must outlive the loader.
  explicit TaskLoader(const TaskIndex& index) : index_(index) {}

  // In the order of `names`; those of a pattern sorted.
  std::vector<TaskNode> load(const std::vector<std::string>& names);

 private:
  std::vector<TaskNode> load_name(const std::string& name);
  TaskEntry entry_of_file(const std::filesystem::path& file);

  // `overrides`: a dict.
  std::vector<TaskNode> build(const TaskEntry& entry, const jinja::Value& overrides);
  TaskNode build_task(const TaskEntry& entry, const jinja::Value& overrides);
  TaskNode build_group(const std::string& name, const jinja::Value& written,
                       const std::filesystem::path& file, bool is_inline,
                       const jinja::Value& overrides);
  std::vector<TaskNode> build_members(const jinja::Value& item, const TaskGroup& group,
                                      const jinja::Value& overrides);
  std::vector<TaskNode> build_inline_group(const jinja::Value& item, const TaskGroup& group,
                                           const jinja::Value& overrides);
  TaskNode build_inline_task(const std::string& name, const jinja::Value& written,
                             const TaskGroup& group);
  [[noreturn]] void refuse_unknown(const std::string& name, const std::string& where) const;
  void count();

  const TaskIndex& index_;
  TaskFiles files_;
  std::vector<std::string> open_groups_;
  int64_t num_built_ = 0;
};

// Throws Error{kInvalid} where a task is in two of `nodes`.
void check_tasks_are_apart(const std::vector<TaskNode>& nodes);

// The names of all tasks, groups and tags that can be asked for, a line each.
std::string task_list(const std::vector<std::filesystem::path>& include_paths);

// The tasks of `names`, with commas between, from the folders of task_folders.h. `option`: where
// the names stand, for errors. `note` gets a line on task files that are passed over.
std::vector<TaskNode> load_tasks(const std::string& names, const std::string& option,
                                 const std::vector<std::filesystem::path>& include_paths,
                                 const std::function<void(const std::string&)>& note);

}  // namespace skein
