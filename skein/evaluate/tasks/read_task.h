// The fields of a task from the dict of its file, with the defaults of lm-evaluation-harness.
//
// Every key that it knows is read; another one is refused, as it refuses it. `group`, `task_list`
// and `tag` say where a task belongs, and are no fields.
//
// Defaults  generation_kwargs of generate_until: temperature 0, do_sample false, max_gen_toks 256,
//           until [fewshot_delimiter]; where the file has generation_kwargs, only `until`
// Errors    kInvalid, "FILE: task NAME: KEY ..."; kUnsupported for class, use_prompt,
//           custom_dataset, doc_to_image, doc_to_audio and a sampler that is a function
// Source    lm-evaluation-harness 0.4.13, config/task.py, defaults.py, api/task.py
#pragma once

#include <filesystem>
#include <string>

#include "skein/evaluate/tasks/task_config.h"

namespace skein {

// `written`: a dict with the key `task`. `source`: metadata.config_source, the file or "inline";
// empty for a task without a file of its own, whose metadata stays as it is.
TaskConfig read_task(const jinja::Value& written, const std::filesystem::path& file,
                     const std::string& source);

}  // namespace skein
