#include "skein/cli/inputs/chat_arguments.h"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/cli/shared/command.h"
#include "skein/cli/shared/print.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {
namespace {

std::tm today() {
  std::tm time = local_time();
  time.tm_hour = time.tm_min = time.tm_sec = 0;  // a corpus depends on the day alone
  return time;
}

std::tm date_of(const std::string& text) {
  std::tm time{};
  const char* const end = strptime(text.c_str(), "%Y-%m-%d", &time);
  if (end == nullptr || *end != '\0') {
    fail(ErrorCode::kUsage, "--chat-date {}: expected a day as 2024-07-26", text);
  }
  return time;
}

}  // namespace

void add_chat_options(CLI::App& command, ChatArguments& arguments) {
  as_path(command.add_option(
      "--chat-template", arguments.chat_template,
      "inputs are conversations, JSON or rows of tables, rendered with a template: a file, the "
      "folder of a tokenizer, or default (ChatML)"));
  as_path(command.add_option(
      "--tokenizer", arguments.tokenizer,
      "of --chat-template: the folder of the tokenizer that will train on it, whose special "
      "tokens the template spells; without --chat-template, its own template"));
  command.add_option("--chat-date", arguments.date,
                     "the day, YYYY-MM-DD, for templates that print it; today");
  command.add_flag("--no-completions", arguments.no_completions,
                   "do not mark what the assistant wrote");
}

std::shared_ptr<const ChatRenderer> chat_renderer(const ChatArguments& arguments) {
  if (arguments.chat_template.empty() && arguments.tokenizer.empty()) {
    if (!arguments.date.empty() || arguments.no_completions) {
      fail(ErrorCode::kUsage,
           "--chat-date and --no-completions are of conversations: expected --chat-template");
    }
    return nullptr;
  }
  ChatOptions options;
  options.source = chat_template_source(arguments.chat_template, arguments.tokenizer);
  options.finds_spans = !arguments.no_completions;
  options.now = arguments.date.empty() ? today() : date_of(arguments.date);
  auto renderer = std::make_shared<const ChatRenderer>(std::move(options));
  std::string line = fmt::format("chat template: {}", renderer->options().source.name);
  if (!arguments.no_completions) {
    line += renderer->has_generation()
                ? "; completions are what its {% generation %} blocks write"
                : "; completions are the assistant's turns, each with its end marker";
  }
  if (renderer->spells_time()) {
    char day[32];
    std::strftime(day, sizeof day, "%Y-%m-%d", &renderer->options().now);
    line += fmt::format("; it may print the date, {} (--chat-date sets it)", day);
  }
  print_line(stderr, "{}", line);
  log::warn(
      "the template's special tokens are tokens in training only with data.special_tokens = "
      "\"parse\"; {}",
      arguments.no_completions
          ? "completions are not marked"
          : "data.loss_on = \"completion\" trains on what the assistant wrote alone");
  return renderer;
}

std::vector<std::string> chat_words(const ChatArguments& arguments) {
  std::vector<std::string> words;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  const bool is_word = arguments.chat_template == "default";
  add("--chat-template", is_word || arguments.chat_template.empty()
                             ? arguments.chat_template
                             : place_text(arguments.chat_template));
  add("--tokenizer", arguments.tokenizer.empty() ? "" : place_text(arguments.tokenizer));
  add("--chat-date", arguments.date);
  if (arguments.no_completions) words.emplace_back("--no-completions");
  return words;
}

}  // namespace skein
