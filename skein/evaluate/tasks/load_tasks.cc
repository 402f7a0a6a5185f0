#include "skein/evaluate/tasks/load_tasks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/name_list.h"
#include "skein/base/text/units.h"
#include "skein/evaluate/tasks/read_group.h"
#include "skein/evaluate/tasks/read_task.h"
#include "skein/evaluate/tasks/request_file.h"
#include "skein/evaluate/tasks/task_folders.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr int64_t kMaxBuilt = 50'000;
const Value& no_overrides() {
  static const Value empty = Value::of(Kind::kDict, std::make_shared<jinja::Dict>());
  return empty;
}

// The keys of `dict`, overridden by those of `by`.
Value overridden(const Value& dict, const Value& by) {
  auto merged = std::make_shared<jinja::Dict>(dict.as_dict());
  for (const auto& [key, value] : by.as_dict().entries) merged->set(key, value);
  return Value::of(Kind::kDict, std::move(merged));
}

template <typename Keeps>
Value filtered(const Value& dict, const Keeps& keeps) {
  auto kept = std::make_shared<jinja::Dict>();
  for (const auto& [key, value] : dict.as_dict().entries) {
    if (!key.is_string() || keeps(key.text())) kept->set(key, value);
  }
  return Value::of(Kind::kDict, std::move(kept));
}

// Also refuses `include` and names that are no text.
std::string member_name(const Value& item, const char* key, const TaskGroup& group) {
  const Fields fields(item, group.file.string() + ": group " + group.name);
  const std::string name = fields.text_or(key, "");
  if (name.empty()) fields.refuse(key, "no name; expected `" + std::string(key) + ": name`");
  return name;
}

// As Python's dict: a child with the name of a former one is in its place.
void add_child(TaskGroup& group, TaskNode node) {
  const auto former =
      std::find_if(group.children.begin(), group.children.end(),
                   [&](const TaskNode& child) { return child.name() == node.name(); });
  if (former == group.children.end()) {
    group.children.push_back(std::move(node));
  } else {
    *former = std::move(node);
  }
}

}  // namespace

std::vector<TaskNode> TaskLoader::load(const std::vector<std::string>& names) {
  num_built_ = 0;
  open_groups_.clear();  // an earlier load may have failed
  std::vector<std::string> expanded;
  for (const std::string& name : names) {
    const bool is_pattern = name.find_first_of("*?[") != std::string::npos;
    if (index_.find(name) != nullptr || !is_pattern || name.ends_with(".yaml") ||
        is_request_file(name)) {
      expanded.push_back(name);
      continue;
    }
    const std::vector<std::string> matches = index_.matches(name);
    if (matches.empty())
      fail(ErrorCode::kNotFound, "no task, group or tag has a name like {}", name);
    expanded.insert(expanded.end(), matches.begin(), matches.end());
  }
  std::vector<TaskNode> nodes;
  std::set<std::string> seen;
  for (const std::string& name : expanded) {
    if (!seen.insert(name).second) continue;
    for (TaskNode& node : load_name(name)) nodes.push_back(std::move(node));
  }
  check_tasks_are_apart(nodes);
  return nodes;
}

std::vector<TaskNode> TaskLoader::load_name(const std::string& name) {
  if (const TaskEntry* const entry = index_.find(name)) return build(*entry, no_overrides());
  if (name.ends_with(".yaml")) return build(entry_of_file(name), no_overrides());
  if (is_request_file(name)) return {{request_file_task(name), nullptr}};
  refuse_unknown(name, "");
}

void TaskLoader::refuse_unknown(const std::string& name, const std::string& where) const {
  const std::string near = index_.nearest(name);
  const std::string hint =
      !near.empty() ? fmt::format("did you mean {}?", near)
      : index_.entries().empty()
          ? "the folders have no task file; to fetch those of lm-evaluation-harness: " +
                how_to_fetch_tasks()
          : fmt::format(
                "{} names are known; a pattern such as 'mmlu_*' and the path of a .yaml "
                "file are names too",
                index_.entries().size());
  fail(ErrorCode::kNotFound, "{}no task, group or tag has the name {}: {}", where, name, hint);
}

TaskEntry TaskLoader::entry_of_file(const fs::path& file) {
  const Value written = files_.read(file);
  const Fields fields(written, file.string());
  TaskEntry entry;
  entry.file = fs::canonical(file);
  const bool is_class = !fields.value("class").is_undefined();
  const bool is_group = !is_class && fields.dict().find("group") != nullptr;
  entry.kind = is_class ? EntryKind::kPythonClass : is_group ? EntryKind::kGroup : EntryKind::kTask;
  entry.name = fields.text_or(is_group ? "group" : "task", "");
  if (entry.name.empty())
    fail(ErrorCode::kInvalid,
         "{}: neither a task nor a group; expected `task: name` or "
         "`group: name`",
         file.string());
  return entry;
}

void TaskLoader::count() {
  if (++num_built_ > kMaxBuilt)
    fail(ErrorCode::kInvalid, "{}: more than {} tasks; groups contain each other many times",
         open_groups_.empty() ? "tasks" : "group " + open_groups_.front(), kMaxBuilt);
}

std::vector<TaskNode> TaskLoader::build(const TaskEntry& entry, const Value& overrides) {
  std::vector<TaskNode> nodes;
  if (entry.kind == EntryKind::kTag) {
    for (const std::string& name : entry.members) {
      const TaskEntry* const member = index_.find(name);
      if (member == nullptr || member->kind == EntryKind::kTag || member->kind == EntryKind::kGroup)
        fail(ErrorCode::kInvalid, "the tag {} has {}, which is no task", entry.name, name);
      nodes.push_back(build_task(*member, overrides));
    }
  } else if (entry.kind == EntryKind::kGroup) {
    nodes.push_back(build_group(entry.name, files_.read(entry.file), entry.file, false, overrides));
  } else {
    nodes.push_back(build_task(entry, overrides));
  }
  return nodes;
}

TaskNode TaskLoader::build_task(const TaskEntry& entry, const Value& overrides) {
  count();
  const Value own = files_.read(entry.file);
  const Value* const name = own.as_dict().find("task");
  if (name == nullptr || !name->is_string() || name->text() != entry.name)
    fail(ErrorCode::kInvalid,
         "{}: expected `task: {}`, which a scan of its lines found; write the "
         "file without quoted text that continues in column 1",
         entry.file.string(), entry.name);
  const Value written = overridden(own, overrides);
  TaskNode node;
  node.task =
      std::make_shared<const TaskConfig>(read_task(written, entry.file, entry.file.string()));
  return node;
}

TaskNode TaskLoader::build_group(const std::string& name, const Value& written,
                                 const fs::path& file, bool is_inline, const Value& overrides) {
  count();
  const auto open = std::find(open_groups_.begin(), open_groups_.end(), name);
  if (open != open_groups_.end())
    fail(ErrorCode::kInvalid, "{}: the group {} is inside itself: {} -> {}", file.string(), name,
         fmt::join(open, open_groups_.end(), " -> "), name);
  open_groups_.push_back(name);
  const Fields fields(written, file.string() + ": group " + name);
  auto group =
      std::make_shared<TaskGroup>(read_group(fields, name, file, is_inline ? "" : file.string()));
  const Value own = filtered(written, [](const std::string& key) { return !is_group_key(key); });
  const Value members = fields.value("task");
  if (!members.is(Kind::kSequence))
    fields.refuse_kind("task", members, "a list of tasks, such as [task_1, task_2]");
  for (const Value& item : members.as_sequence().items) {
    for (TaskNode& node : build_members(item, *group, overridden(own, overrides))) {
      add_child(*group, std::move(node));
    }
  }
  open_groups_.pop_back();
  TaskNode node;
  node.group = std::move(group);
  return node;
}

std::vector<TaskNode> TaskLoader::build_members(const Value& item, const TaskGroup& group,
                                                const Value& overrides) {
  if (item.is_string()) {
    if (const TaskEntry* const entry = index_.find(item.text())) return build(*entry, overrides);
    refuse_unknown(item.text(), group.file.string() + ": group " + group.name + ": ");
  }
  if (item.is(Kind::kDict) && item.as_dict().find("group") != nullptr)
    return build_inline_group(item, group, overrides);
  const std::string name = member_name(item, "task", group);
  const Value merged = overridden(overrides, item);
  const TaskEntry* const entry = index_.find(name);
  if (entry == nullptr) return {build_inline_task(name, merged, group)};
  return build(*entry, filtered(merged, [](const std::string& key) { return key != "task"; }));
}

std::vector<TaskNode> TaskLoader::build_inline_group(const Value& item, const TaskGroup& group,
                                                     const Value& overrides) {
  const std::string name = member_name(item, "group", group);
  const TaskEntry* const entry = index_.find(name);
  if (entry == nullptr)
    return {build_group(group.name + "::" + name, item, group.file, true, overrides)};
  const Value own = filtered(item, [](const std::string& key) { return key != "group"; });
  for (const auto& [key, value] : own.as_dict().entries) {
    if (key.is_string() && is_group_key(key.text()) && key.text() != "metadata")
      fail(ErrorCode::kInvalid,
           "{}: group {}: {} is a group of a file: a dict can set keys of its "
           "tasks, and {} is none; give the inner group another name",
           group.file.string(), group.name, name, key.text());
  }
  return build(*entry, overridden(overrides, own));
}

TaskNode TaskLoader::build_inline_task(const std::string& name, const Value& written,
                                       const TaskGroup& group) {
  count();
  auto named = std::make_shared<jinja::Dict>(written.as_dict());
  named->set(Value::string("task"), Value::string(group.name + "::" + name));
  TaskNode node;
  node.task = std::make_shared<const TaskConfig>(
      read_task(Value::of(Kind::kDict, std::move(named)), group.file, ""));
  return node;
}

void check_tasks_are_apart(const std::vector<TaskNode>& nodes) {
  std::unordered_map<std::string, std::string> owner;
  for (const TaskNode& node : nodes) {
    for (const auto& task : tasks_of({node})) {
      const auto [at, is_new] = owner.try_emplace(task->task, node.name());
      if (!is_new && at->second != node.name())
        fail(ErrorCode::kInvalid, "the task {} is in {} and in {}; name one of them", task->task,
             at->second, node.name());
    }
  }
}

namespace {

TaskIndex index_of(const std::vector<std::filesystem::path>& include_paths, bool are_files) {
  std::vector<fs::path> folders = task_folders(include_paths, are_files);
  if (const auto own = groups_of_skein()) folders.insert(folders.begin(), *own);
  return TaskIndex(folders);
}

}  // namespace

std::string task_list(const std::vector<std::filesystem::path>& include_paths) {
  const TaskIndex index = index_of(include_paths, false);
  std::string list;
  for (const auto& [name, entry] : index.entries()) {
    if (entry.kind == EntryKind::kPythonClass) continue;
    list += name;
    if (entry.kind == EntryKind::kGroup) list += " (group)";
    if (entry.kind == EntryKind::kTag) {
      list += fmt::format(" (tag of {})", counted(std::ssize(entry.members), "task"));
    }
    list += '\n';
  }
  return list;
}

std::vector<TaskNode> load_tasks(const std::string& names, const std::string& option,
                                 const std::vector<std::filesystem::path>& include_paths,
                                 const std::function<void(const std::string&)>& note) {
  const std::vector<std::string> each = names_of_list(names);
  if (each.empty()) {
    fail(ErrorCode::kUsage, "{} is empty: expected names of tasks, with commas between", option);
  }
  const bool are_files = std::ranges::all_of(each, [](const std::string& name) {
    return name.ends_with(".yaml") || is_request_file(name);
  });
  const TaskIndex index = index_of(include_paths, are_files);
  std::vector<TaskNode> nodes = TaskLoader(index).load(each);
  check_tasks_are_apart(nodes);
  // Those of lm-evaluation-harness's own folders are not the user's.
  std::vector<std::string> own;
  for (const std::string& text : index.notes()) {
    const bool is_own = std::ranges::any_of(
        include_paths, [&](const fs::path& folder) { return text.starts_with(folder.string()); });
    if (is_own) own.push_back(text);
  }
  if (!own.empty()) {
    note(fmt::format("{} task file{} passed over; the first: {}", own.size(),
                     own.size() == 1 ? " is" : "s are", own.front()));
  }
  return nodes;
}

}  // namespace skein
