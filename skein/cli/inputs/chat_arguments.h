// The options of `skein data ingest` for conversations: --chat-template, --tokenizer, --chat-date
// and --no-completions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "skein/chat/chat_renderer.h"
#include "skein/cli/shared/command.h"

namespace skein {

struct ChatArguments {
  std::string chat_template;  // a file, a folder or default
  std::string tokenizer;      // a folder
  std::string date;           // YYYY-MM-DD
  bool no_completions = false;
};

void add_chat_options(CLI::App& command, ChatArguments& arguments);

// What renders conversations as they say; null where they do not ask for it. Says what it uses, to
// standard error, and what training then needs.
std::shared_ptr<const ChatRenderer> chat_renderer(const ChatArguments& arguments);

// The options as they were given, for another process that renders the same.
std::vector<std::string> chat_words(const ChatArguments& arguments);

}  // namespace skein
