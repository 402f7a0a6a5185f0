#include "skein/evaluate/requests/prompt.h"

#include "skein/base/text/utf8.h"
#include "skein/jinja/values/text.h"

namespace skein {

bool begins_with_space(std::string_view text) {
  return !text.empty() && jinja::is_space(utf8::first_character(text).code);
}

bool ends_with_space(std::string_view text) {
  return !text.empty() && jinja::is_space(utf8::last_character(text).code);
}

std::string joined(const std::string& first, const std::string& second,
                   std::string_view delimiter) {
  if (first.empty() || second.empty()) return first + second;
  const bool has_space = ends_with_space(first) || begins_with_space(second);
  return has_space ? first + second : first + std::string(delimiter) + second;
}

void add_turn(Prompt& prompt, const std::string& question, const std::string* answer,
              const std::string& gen_prefix, const Delimiters& delimiters) {
  const bool has_answer = answer != nullptr;
  const bool needs_space = !gen_prefix.empty() && !question.empty() && !ends_with_space(question) &&
                           !begins_with_space(gen_prefix);
  const bool is_delimited = (has_answer && gen_prefix.empty()) || needs_space;
  prompt.push_back({"user", question, is_delimited ? delimiters.target : ""});
  if (has_answer) {
    prompt.push_back({"assistant", joined(gen_prefix, *answer, " "), delimiters.example});
  } else if (!gen_prefix.empty()) {
    prompt.push_back({"assistant", gen_prefix, ""});
  }
}

std::string prompt_text(const Prompt& prompt) {
  std::string text;
  for (const PromptMessage& message : prompt) text += message.content + message.delimiter;
  return text;
}

std::vector<ChatMessage> chat_messages(const Prompt& prompt, bool as_multiturn) {
  std::vector<ChatMessage> messages;
  if (as_multiturn) {
    for (const PromptMessage& message : prompt) messages.push_back({message.role, message.content});
    return messages;
  }
  size_t begin = 0, end = prompt.size();
  if (prompt.front().role == "system")
    messages.push_back({prompt[begin].role, prompt[begin].content}), ++begin;
  if (prompt.back().role == "assistant") --end;
  std::string turns;
  for (size_t i = begin; i < end; ++i)
    turns += prompt[i].content + (i + 1 < end ? prompt[i].delimiter : "");
  messages.push_back({"user", std::move(turns)});
  if (end < prompt.size()) messages.push_back({"assistant", prompt.back().content});
  return messages;
}

}  // namespace skein
