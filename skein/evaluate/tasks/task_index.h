// The task files of some folders: which names they give to tasks, groups and tags.
//
// Order   a later folder overrides an earlier one, as in lm-evaluation-harness; of two files of one
//         folder with one name, the first in the order of paths counts. Read: *.yaml at any depth,
//         not through links to folders
// Cost    every file is read once, about 0.03 ms each; a task is parsed when it is loaded
// Errors  kNotFound for a folder that is not there. A file that cannot be indexed is left out, with
//         a line in notes()
// Source  lm-evaluation-harness 0.4.13, tasks/_index.py
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

enum class EntryKind : uint8_t { kTask, kPythonClass, kGroup, kTag };

struct TaskEntry {
  std::string name;
  EntryKind kind = EntryKind::kTask;
  std::filesystem::path file;     // empty for a tag
  std::set<std::string> members;  // of a tag: the tasks that have it
};

class TaskIndex {
 public:
  using Entries = std::map<std::string, TaskEntry, std::less<>>;

  explicit TaskIndex(const std::vector<std::filesystem::path>& folders);

  const Entries& entries() const { return entries_; }
  const TaskEntry* find(std::string_view name) const;
  // The names that a pattern with *, ? and [abc] matches, sorted.
  std::vector<std::string> matches(const std::string& pattern) const;
  // The known name that is nearest to `name`; empty where none is near.
  std::string nearest(std::string_view name) const;

  // Files that were left out, and names that two files have: a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Entries entries_;
  std::vector<std::string> notes_;
};

}  // namespace skein
