// A task or a group as the dict that lm-evaluation-harness prints under `configs` of its results.
//
// Keys that have no value are left out; those that have a default are there with it. A function is
// a callable (function_name()); lm-evaluation-harness prints its source.
//
// Source  lm-evaluation-harness 0.4.13, TaskConfig.to_dict, GroupConfig.to_dict
#pragma once

#include "skein/evaluate/tasks/task_group.h"

namespace skein {

jinja::Value config_dict(const TaskConfig& task);
jinja::Value config_dict(const TaskGroup& group);

}  // namespace skein
