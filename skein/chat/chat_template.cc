#include "skein/chat/chat_template.h"

#include <fmt/format.h>

#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/json.h"

namespace skein {
namespace {

constexpr const char* kTokens[] = {"bos_token", "eos_token", "unk_token", "pad_token"};

constexpr char kChatMl[] =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// "<s>", or {"content": "<s>"}.
std::string token_text(const Json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return token["content"].get<std::string>();
  }
  return "";
}

void add_tokens(const fs::path& folder, std::map<std::string, std::string>& tokens) {
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    if (!is_there(folder / name)) continue;
    const Json config = read_json((folder / name).string());
    if (!config.is_object()) continue;
    for (const char* token : kTokens) {
      const std::string text = config.contains(token) ? token_text(config[token]) : "";
      if (!text.empty()) tokens[token] = text;
    }
  }
}

// The template in tokenizer_config.json; empty: there is none.
std::string template_in(const fs::path& path) {
  const Json config = read_json(path.string());
  if (!config.is_object() || !config.contains("chat_template")) return "";
  const Json& found = config["chat_template"];
  if (found.is_string()) return found.get<std::string>();
  if (!found.is_array()) return "";
  for (const Json& one : found) {
    if (one.is_object() && one.value("name", Json()) == "default" && one.contains("template") &&
        one["template"].is_string()) {
      return one["template"].get<std::string>();
    }
  }
  fail(ErrorCode::kUsage,
       "--chat-template {}: `chat_template` is a list without one named `default`: write the "
       "template that you want to a file, and name the file",
       path.string());
}

void read_folder(const fs::path& folder, ChatTemplateSource& made) {
  const fs::path file = folder / "chat_template.jinja";
  const fs::path config = folder / "tokenizer_config.json";
  if (is_there(file)) {
    made.name = file.string();
    made.source = read_file(file);
    return;
  }
  made.source = is_there(config) ? template_in(config) : "";
  made.name = config.string();
  if (made.source.empty()) {
    fail(ErrorCode::kUsage,
         "--chat-template {}: the folder has neither chat_template.jinja nor a "
         "tokenizer_config.json with `chat_template`: name a file with a template, or "
         "--chat-template default for ChatML",
         folder.string());
  }
}

fs::path folder_of(const fs::path& tokenizer) {
  std::error_code ignored;
  return fs::is_directory(tokenizer, ignored) ? tokenizer : tokenizer.parent_path();
}

}  // namespace

ChatTemplateSource chat_template_source(const std::string& named, const fs::path& tokenizer) {
  ChatTemplateSource made;
  std::error_code ignored;
  const fs::path path = named.empty() ? tokenizer : fs::path(named);
  fs::path beside;
  if (named == "default" && !is_there(named)) {
    made.name = "the default, ChatML";
    made.source = kChatMl;
    made.tokens = {{"eos_token", "<|im_end|>"}};
  } else if (!is_there(path)) {
    fail(
        ErrorCode::kUsage,
        "--chat-template {}: there is no such file or folder: expected a template, the folder of a "
        "tokenizer, or default",
        path.string());
  } else if (fs::is_directory(path, ignored)) {
    read_folder(path, made);
    beside = path;
  } else {
    made.name = path.string();
    const bool is_config = path.extension() == ".json";
    made.source = is_config ? template_in(path) : read_file(path);
    beside = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (is_config && made.source.empty()) {
      fail(ErrorCode::kUsage, "--chat-template {}: has no `chat_template`: expected one",
           path.string());
    }
  }
  if (!tokenizer.empty()) made.tokens.clear();
  add_tokens(tokenizer.empty() ? beside : tokenizer, made.tokens);
  return made;
}

std::map<std::string, std::string> special_tokens_of(const fs::path& tokenizer) {
  std::map<std::string, std::string> tokens;
  add_tokens(folder_of(tokenizer), tokens);
  return tokens;
}

std::optional<ChatTemplateSource> own_chat_template(const fs::path& tokenizer) {
  const fs::path folder = folder_of(tokenizer);
  const fs::path config = folder / "tokenizer_config.json";
  const bool has_one = is_there(folder / "chat_template.jinja") ||
                       (is_there(config) && read_json(config.string()).contains("chat_template"));
  if (!has_one) return std::nullopt;
  return chat_template_source(folder.string(), {});
}

}  // namespace skein
