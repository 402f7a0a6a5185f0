// The fields of a group from the dict of its file, or from a dict inside another group.
//
// Errors  kInvalid for a key of aggregate_metric_list that is not known, another aggregation than
//         mean; kUnsupported for one that is a function
// Source  lm-evaluation-harness 0.4.13, config/group.py
#pragma once

#include <string>

#include "skein/evaluate/tasks/task_fields.h"
#include "skein/evaluate/tasks/task_group.h"

namespace skein {

// The group without its children. `source` as in read_task.h.
TaskGroup read_group(const Fields& fields, const std::string& name,
                     const std::filesystem::path& file, const std::string& source);

// Whether `key` belongs to the group; another one is a key of all its tasks.
bool is_group_key(std::string_view key);

}  // namespace skein
