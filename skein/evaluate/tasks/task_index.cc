#include "skein/evaluate/tasks/task_index.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/nearest.h"
#include "skein/evaluate/tasks/top_level_keys.h"
#include "skein/evaluate/yaml/yaml_value.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr int kMaxIncludes = 32;  // inside each other

std::vector<std::string> yaml_files(const fs::path& folder) {
  const auto is_ignored = [](const fs::path& name) {
    return name == "__pycache__" || name == ".ipynb_checkpoints";
  };
  if (std::any_of(folder.begin(), folder.end(), is_ignored)) return {};
  std::vector<std::string> files;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(folder, options); at != fs::end(at); ++at) {
    const std::string& path = at->path().native();
    if (path.ends_with(".yaml")) {
      if (at->is_regular_file()) files.push_back(path);
    } else if (at->is_directory() && is_ignored(at->path().filename())) {
      at.disable_recursion_pending();
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The keys of files, with those that they include; each file is read once.
class Files {
 public:
  const TopLevelKeys& keys(const std::string& file, int depth = 0) {
    if (const auto found = known_.find(file); found != known_.end()) return found->second;
    if (depth > kMaxIncludes)
      fail(ErrorCode::kInvalid, "{}: more than {} files include each other", file, kMaxIncludes);
    if (!fs::is_regular_file(file)) fail(ErrorCode::kNotFound, "{}: no such file", file);
    TopLevelKeys own = top_level_keys(read_file(file, YamlLimits{}.max_bytes), file);
    if (own.include.is_undefined()) return known_.emplace(file, std::move(own)).first->second;
    std::vector<Value> includes = {own.include};
    if (own.include.is(Kind::kSequence)) includes = own.include.as_sequence().items;
    TopLevelKeys merged;
    for (const Value& include : includes) {
      if (!include.is_string())
        fail(ErrorCode::kInvalid, "{}: include: a {}; expected the path of a file", file,
             jinja::type_name(include));
      const fs::path path = (fs::path(file).parent_path() / include.text()).lexically_normal();
      override(merged, keys(path.native(), depth + 1));
    }
    override(merged, own);
    return known_.emplace(file, std::move(merged)).first->second;
  }

 private:
  static void override(TopLevelKeys& keys, const TopLevelKeys& by) {
    for (auto member : {&TopLevelKeys::python_class, &TopLevelKeys::group, &TopLevelKeys::task,
                        &TopLevelKeys::tag}) {
      if (!(by.*member).is_undefined()) keys.*member = by.*member;
    }
  }

  std::unordered_map<std::string, TopLevelKeys> known_;
};

// The names of one folder.
class Folder {
 public:
  TaskIndex::Entries entries;
  std::vector<std::string> notes;

  void add(const std::string& file, const TopLevelKeys& keys) {
    const bool is_class = !keys.python_class.is_undefined();
    const bool is_group = !is_class && !keys.group.is_undefined();
    const Value& name = is_group ? keys.group : keys.task;
    if (!name.is_string()) {
      const char* const expected = "expected `task: name` or `group: name`";
      const bool has_any = is_class || is_group || !name.is_undefined();
      notes.push_back(fmt::format("{}: {}; {}", file,
                                  has_any ? "its name is no text" : "neither a task nor a group",
                                  expected));
      return;
    }
    TaskEntry entry;
    entry.name = name.text();
    entry.file = file;
    entry.kind = is_class   ? EntryKind::kPythonClass
                 : is_group ? EntryKind::kGroup
                            : EntryKind::kTask;
    const auto [at, is_new] = entries.try_emplace(entry.name, entry);
    if (!is_new) {
      notes.push_back(fmt::format("{}: the name {} is that of {} already; this file is left out",
                                  file, entry.name,
                                  at->second.file.empty() ? "a tag" : at->second.file.string()));
    } else if (!is_group) {
      add_tags(entry.name, keys.tag);
    }
  }

 private:
  void add_tags(const std::string& task, const Value& tag) {
    if (tag.is_string() && !tag.text().empty()) add_tag(task, tag.text());
    if (!tag.is(Kind::kSequence)) return;
    for (const Value& one : tag.as_sequence().items) {
      if (one.is_string()) add_tag(task, one.text());
    }
  }
  void add_tag(const std::string& task, const std::string& tag) {
    TaskEntry& entry =
        entries.try_emplace(tag, TaskEntry{tag, EntryKind::kTag, {}, {}}).first->second;
    entry.members.insert(task);
  }
};

}  // namespace

TaskIndex::TaskIndex(const std::vector<fs::path>& folders) {
  Files files;
  for (const fs::path& root : folders) {
    if (!fs::is_directory(root))
      fail(ErrorCode::kNotFound, "{}: no folder of task files; expected a folder with *.yaml",
           root.string());
    Folder folder;
    for (const std::string& file : yaml_files(root)) {
      try {
        folder.add(file, files.keys(file));
      } catch (const Error& error) {
        notes_.push_back(fmt::format("{} is left out: {}", file, error.what()));
      }
    }
    std::move(folder.notes.begin(), folder.notes.end(), std::back_inserter(notes_));
    for (auto& [name, entry] : folder.entries) {
      const auto former = entries_.find(name);
      if (former != entries_.end() && !entry.file.empty() && !former->second.file.empty())
        notes_.push_back(fmt::format("{}: {} overrides that of {}", entry.file.string(), name,
                                     former->second.file.string()));
      entries_.insert_or_assign(name, std::move(entry));
    }
  }
}

const TaskEntry* TaskIndex::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<std::string> TaskIndex::matches(const std::string& pattern) const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0) names.push_back(name);
  }
  return names;
}

std::string TaskIndex::nearest(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const auto& [known, entry] : entries_) names.push_back(known);
  return std::string(nearest_name(name, names));
}

}  // namespace skein
