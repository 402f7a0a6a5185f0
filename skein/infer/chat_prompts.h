// The prompts of an evaluation as a chat template renders them.
//
// Beginning  where the last message is the beginning of an answer, the text ends with it
// System     where the template refuses a conversation, messages of the system are left out, which
//            `note` says once
// Errors     Error{kUsage} if the tokenizer has no chat template; kInvalid naming the template
// Source     lm-evaluation-harness 0.4.13, models/huggingface.py; transformers'
//            apply_chat_template(continue_final_message)
#pragma once

#include <functional>
#include <string>

#include "skein/base/files/file.h"
#include "skein/evaluate/requests/prompt.h"

namespace skein {

ChatTemplate chat_prompts(const fs::path& tokenizer, std::function<void(const std::string&)> note);

}  // namespace skein
