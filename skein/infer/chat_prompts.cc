#include "skein/infer/chat_prompts.h"

#include <memory>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/chat/chat_renderer.h"
#include "skein/jinja/values/text.h"

namespace skein {
namespace {

std::string conversation_of(const std::vector<ChatMessage>& messages) {
  Json list = Json::array();
  for (const ChatMessage& message : messages) {
    list.push_back(Json{{"role", message.role}, {"content", message.content}});
  }
  Json conversation;
  conversation["messages"] = std::move(list);
  return json_text(conversation);
}

std::string_view stripped(std::string_view text, jinja::Side side) {
  return jinja::strip(text, side, nullptr);
}

// `rendered` up to the end of the last message, without what the template puts behind it.
std::string up_to_message(std::string rendered, std::string_view message, const std::string& name) {
  const std::string_view core = stripped(message, jinja::Side::kBoth);
  const size_t at = rendered.rfind(core);
  if (at == std::string::npos) {
    fail(ErrorCode::kInvalid,
         "{}: the template does not write the last message as it is: the beginning of an answer "
         "(gen_prefix) cannot be continued",
         name);
  }
  const std::string_view whole = stripped(message, jinja::Side::kLeft);
  const bool is_whole = rendered.compare(at, whole.size(), whole) == 0;
  rendered.resize(at + (is_whole ? whole : core).size());
  return rendered;
}

}  // namespace

ChatTemplate chat_prompts(const fs::path& tokenizer, std::function<void(const std::string&)> note) {
  auto source = own_chat_template(tokenizer);
  if (!source) {
    fail(ErrorCode::kUsage,
         "--apply-chat-template: the tokenizer {} has no chat template: expected "
         "chat_template.jinja, or chat_template in tokenizer_config.json",
         tokenizer.string());
  }
  const auto renderer = std::make_shared<const ChatRenderer>(
      ChatOptions{.source = std::move(*source), .finds_spans = false});
  return [renderer, now = local_time(), note = std::move(note), has_noted = false](
             std::vector<ChatMessage> messages, bool add_generation_prompt) mutable {
    const std::string& name = renderer->options().source.name;
    const auto rendered = [&] {
      std::string text = renderer->prompt(conversation_of(messages), "an evaluation's prompt",
                                          {.now = now, .begins_turn = add_generation_prompt});
      if (add_generation_prompt) return text;
      return up_to_message(std::move(text), messages.back().content, name);
    };
    const auto is_system = [](const ChatMessage& message) { return message.role == "system"; };
    try {
      return rendered();
    } catch (const Error& error) {
      if (std::erase_if(messages, is_system) == 0) throw;
      if (!std::exchange(has_noted, true)) {
        note(fmt::format("{}: refuses messages of the system, which are left out: {}", name,
                         error.what()));
      }
      return rendered();
    }
  };
}

}  // namespace skein
