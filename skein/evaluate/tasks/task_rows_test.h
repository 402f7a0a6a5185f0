// What the tests compare with lm-evaluation-harness: each name of an index as JSON.
#pragma once

#include <string>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/evaluate/tasks/config_dict.h"
#include "skein/evaluate/tasks/load_tasks.h"
#include "skein/jinja/values/printed.h"

namespace skein::test {

// A function is {"!function": name}; a key that is no text has its type before it.
inline Json json_of(const jinja::Value& value) {
  using jinja::Kind;
  switch (value.kind()) {
    case Kind::kNone:
      return nullptr;
    case Kind::kBool:
      return value.as_bool();
    case Kind::kInteger:
      return value.as_integer();
    case Kind::kFloat:
      return value.as_float();
    case Kind::kCallable:
      return {{"!function", value.as_callable().name}};
    case Kind::kString:
      return value.text();
    case Kind::kSequence: {
      Json list = Json::array();
      for (const jinja::Value& item : value.as_sequence().items) list.push_back(json_of(item));
      return list;
    }
    case Kind::kDict: {
      Json dict = Json::object();
      jinja::Budget budget({});
      for (const auto& [key, item] : value.as_dict().entries) {
        const std::string name =
            key.is_string() ? key.text() : jinja::type_name(key) + " " + printed(key, budget);
        dict[name] = json_of(item);
      }
      return dict;
    }
    default:
      return "a " + jinja::type_name(value);
  }
}

inline Json tree_of(const TaskNode& node) {
  if (node.task != nullptr) return {{"task", json_of(config_dict(*node.task))}};
  Json children = Json::array();
  for (const TaskNode& child : node.group->children) children.push_back(tree_of(child));
  return {{"group", json_of(config_dict(*node.group))}, {"children", children}};
}

inline Json row_of(const TaskEntry& entry, TaskLoader& loader) {
  Json row = {{"name", entry.name}};
  try {
    switch (entry.kind) {
      case EntryKind::kTag:
        row["kind"] = "tag";
        row["members"] = entry.members;
        break;
      case EntryKind::kPythonClass:
        row["kind"] = "class";
        loader.load({entry.name});
        break;
      case EntryKind::kTask:
        row["kind"] = "task";
        row["config"] = json_of(config_dict(*loader.load({entry.name}).at(0).task));
        break;
      case EntryKind::kGroup:
        row["kind"] = "group";
        row["tree"] = tree_of(loader.load({entry.name}).at(0));
        break;
    }
  } catch (const Error& error) {
    row["error"] = error.what();
  }
  return row;
}

}  // namespace skein::test
