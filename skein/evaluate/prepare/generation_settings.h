// generation_kwargs of a task: how a text is continued, and when it ends.
//
//   until                                   stop texts
//   max_gen_toks, max_new_tokens, max_tokens, max_completion_tokens
//                                           new tokens at most; the first that is there; 256
//   do_sample, temperature, top_p, top_k    without do_sample: always the likeliest token
//
// Errors   kUnsupported for another key, by name; kInvalid for a value of another type
// Source   lm-evaluation-harness 0.4.13, models/utils.py
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/evaluate/tasks/task_config.h"

namespace skein {

struct GenerationSettings {
  std::vector<std::string> until;
  int64_t max_tokens = 256;
  double temperature = 0;  // 0: always the likeliest token
  double top_p = 1;
  int64_t top_k = 0;
};

GenerationSettings generation_settings(const TaskConfig& task);

}  // namespace skein
