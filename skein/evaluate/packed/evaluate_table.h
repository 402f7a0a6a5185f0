// The tasks of one [[evaluate]], read and encoded for rows of training.
//
// Errors  those of TaskLoader, TaskTexts and TextEncoder
#pragma once

#include <functional>
#include <string>

#include "skein/config/config.h"
#include "skein/evaluate/packed/task_texts.h"

namespace skein {

// `note` gets a line for each thing that a person did not ask for.
TaskTexts read_evaluate_table(const EvaluateConfig& config, const Tokenizer& tokenizer,
                              int64_t sequence_length,
                              const std::function<void(const std::string&)>& note);

}  // namespace skein
