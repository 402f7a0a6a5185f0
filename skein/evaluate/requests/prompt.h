// A prompt as a list of messages: instructions, examples with their answers, the question. They
// become text, each with the delimiter behind it, or the messages of a chat template.
//
//   system     the system instruction and the task's description
//   user       a question; a delimiter behind it if an answer or an answer's beginning (gen_prefix)
//              follows
//   assistant  an example's answer, or the beginning of the answer to be given
//
// Source   lm-evaluation-harness 0.4.13, api/task.py (build_qa_turn), api/utils.py
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

struct ChatMessage {
  std::string role, content;
};

// Renders messages with the chat template of a model. Without add_generation_prompt the last
// message is the beginning of an answer, and nothing closes it.
using ChatTemplate = std::function<std::string(const std::vector<ChatMessage>& messages,
                                               bool add_generation_prompt)>;

struct PromptMessage {
  std::string role, content, delimiter;
};
using Prompt = std::vector<PromptMessage>;

struct Delimiters {
  std::string target;   // behind a question
  std::string example;  // behind an answer
};

// A question and, if there is one, an example's answer. `answer` null: none.
void add_turn(Prompt& prompt, const std::string& question, const std::string* answer,
              const std::string& gen_prefix, const Delimiters& delimiters);

std::string prompt_text(const Prompt& prompt);
// One user message of all turns, but for the system message and a last message of the assistant; or
// each turn as messages of its own.
std::vector<ChatMessage> chat_messages(const Prompt& prompt, bool as_multiturn);

// Both, with `delimiter` between them if neither is empty and no blank is there.
std::string joined(const std::string& first, const std::string& second, std::string_view delimiter);
bool begins_with_space(std::string_view text);
bool ends_with_space(std::string_view text);

}  // namespace skein
