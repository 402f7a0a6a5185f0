// Parts of a task: metric_list, filter_list, fewshot_config, metadata, lists of names.
//
// Errors  kInvalid, kUnsupported, as read_task.h says
// Source  lm-evaluation-harness 0.4.13, api/task.py, config/task.py
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skein/evaluate/tasks/task_config.h"
#include "skein/evaluate/tasks/task_fields.h"

namespace skein {

std::vector<MetricConfig> read_metrics(const Fields& task);
std::vector<FilterConfig> read_filters(const Fields& task);
// What fewshot_config does not name is as `config` has it.
FewShotConfig read_fewshot(const Fields& task, const TaskConfig& config);
// `metadata`, a dict, with config_source, which is `source`; without it where `source` is empty.
jinja::Value read_metadata(const Fields& fields, const std::string& source);
// A dict, or undefined where the key is absent or null.
jinja::Value read_dict(const Fields& fields, std::string_view key);
// A text, or a list of texts.
std::vector<std::string> read_names(const Fields& fields, std::string_view key);

}  // namespace skein
