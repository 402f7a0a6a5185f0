// The keys of a task file that its place in the index depends on.
//
// A scan over the lines finds them in a quarter of the time that parsing the YAML takes. If a line
// has a form that the scan does not know, the file is parsed. A nested quoted scalar with a line
// `task: name` in column 1 would mislead it; the loader of a task compares the name.
//
// Errors  Error{kInvalid} where the file has to be parsed and is not YAML, or no dict
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "skein/jinja/values/value.h"

namespace skein {

// Undefined: the file has no such key. The items of a list `task` are left out.
struct TopLevelKeys {
  jinja::Value python_class, group, task, tag, include;

  jinja::Value* find(std::string_view key);
};

// `what` names the text in errors: a file.
TopLevelKeys top_level_keys(std::string_view text, const std::string& what);

// The scan alone: nothing where it is not sure.
std::optional<TopLevelKeys> scan_top_level_keys(std::string_view text);

}  // namespace skein
