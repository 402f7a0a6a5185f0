#include "skein/chat/chat_renderer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"

namespace skein {
namespace {

using jinja::Dict;
using jinja::Kind;
using jinja::Value;

// Of all beginnings of a conversation together: messages and bytes.
constexpr size_t kMostRendered = 20'000'000;
constexpr size_t kMostBytes = size_t{4} << 30;

bool is_of_assistant(const Value& message) {
  const Value* role = message.as_dict().find("role");
  return role != nullptr && role->is_string() && role->text() == "assistant";
}

// OpenAI's "weight": 0 and "train": false leave a turn out of what is trained on.
bool is_trained(const Value& message) {
  const auto is_off = [&](const char* key) {
    const Value* value = message.as_dict().find(key);
    return value != nullptr && (value->is_number() || value->is(Kind::kBool)) &&
           !jinja::is_true(*value);
  };
  return !is_off("weight") && !is_off("train");
}

std::string time_text(const std::tm& time) {
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &time)};
}

}  // namespace

std::tm local_time() {
  const std::time_t seconds = std::time(nullptr);
  std::tm time{};
  ::localtime_r(&seconds, &time);
  return time;
}

ChatRenderer::ChatRenderer(ChatOptions options)
    : options_(std::move(options)), template_(options_.source.source, options_.source.name) {
  render_options_.now = options_.now;
}

Json ChatRenderer::key() const {
  Json key = {{"template", xxh3_128_hex(std::as_bytes(std::span(options_.source.source)))},
              {"tokens", options_.source.tokens},
              {"spans", options_.finds_spans}};
  if (spells_time()) key["date"] = time_text(options_.now);
  return key;
}

// The first `count` messages, with what begins the assistant's turn behind them where it `prompts`.
jinja::Rendered ChatRenderer::render_turns(const Conversation& conversation, size_t count,
                                           bool prompts,
                                           const jinja::RenderOptions& options) const {
  auto variables = std::make_shared<Dict>();
  variables->set(Value::string("tools"), Value::none());
  variables->set(Value::string("documents"), Value::none());
  for (const auto& [key, value] : conversation.others.as_dict().entries) variables->set(key, value);
  for (const auto& [name, token] : options_.source.tokens) {
    variables->set(Value::string(name), Value::string(token));
  }
  const auto& messages = conversation.messages;
  variables->set(Value::string("messages"),
                 Value::list({messages.begin(), messages.begin() + static_cast<int64_t>(count)}));
  variables->set(Value::string("add_generation_prompt"), Value::boolean(prompts));
  return template_.render(Value::of(Kind::kDict, std::move(variables)), options);
}

std::string ChatRenderer::prompt(std::string_view object, const std::string& where,
                                 const PromptOptions& options) const {
  const Conversation conversation = conversation_of(object, where);
  jinja::RenderOptions render_options = render_options_;
  render_options.now = options.now;
  return render_turns(conversation, conversation.messages.size(), options.begins_turn,
                      render_options)
      .text;
}

RenderedChat ChatRenderer::render(std::string_view object, const std::string& where) const {
  const Conversation conversation = conversation_of(object, where);
  RenderedChat made;
  try {
    jinja::Rendered rendered =
        render_turns(conversation, conversation.messages.size(), false, render_options_);
    made.text = std::move(rendered.text);
    if (!options_.finds_spans) return made;
    if (has_generation()) {
      made.spans = spans_of_blocks(conversation, rendered.generations, where);
    } else {
      made.spans = spans_of_turns(conversation, made.text, where);
    }
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(where)) throw;
    throw Error(ErrorCode::kInvalid, fmt::format("{}: {}", where, error.what()));
  }
  std::erase_if(made.spans, [](const ByteRange& span) { return span.size() <= 0; });
  return made;
}

std::vector<ByteRange> ChatRenderer::spans_of_blocks(const Conversation& conversation,
                                                     std::span<const jinja::Span> blocks,
                                                     const std::string& where) const {
  std::vector<bool> trained;  // of the assistant's messages
  for (const Value& message : conversation.messages) {
    if (is_of_assistant(message)) trained.push_back(is_trained(message));
  }
  const bool are_all = std::find(trained.begin(), trained.end(), false) == trained.end();
  if (!are_all && trained.size() != blocks.size()) {
    fail(ErrorCode::kUnsupported,
         "{}: a message has weight 0 or train false, and the {{% generation %}} blocks of the "
         "template are {} for {} messages of the assistant: expected one for each",
         where, blocks.size(), trained.size());
  }
  std::vector<ByteRange> spans;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (are_all || trained[i]) spans.push_back({blocks[i].begin, blocks[i].end});
  }
  return spans;
}

std::vector<ByteRange> ChatRenderer::spans_of_turns(const Conversation& conversation,
                                                    const std::string& whole,
                                                    const std::string& where) const {
  std::vector<ByteRange> spans;
  const auto& messages = conversation.messages;
  size_t num_rendered = 0, num_bytes = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!is_of_assistant(messages[i])) continue;
    const std::string before =
        i == 0 ? "" : render_turns(conversation, i, true, render_options_).text;
    const std::string behind = i + 1 == messages.size()
                                   ? whole
                                   : render_turns(conversation, i + 1, false, render_options_).text;
    num_rendered += 2 * i;
    num_bytes += before.size() + behind.size();
    if (num_rendered > kMostRendered || num_bytes > kMostBytes) {
      fail(ErrorCode::kUnsupported,
           "{}: {} messages, whose completions would be found by rendering each beginning of them: "
           "expected fewer; put {{% generation %}} … {{% endgeneration %}} around what the "
           "assistant wrote in the template, or --no-completions leaves it unmarked",
           where, messages.size());
    }
    const bool is_behind_last =
        spans.empty() || static_cast<int64_t>(before.size()) >= spans.back().end;
    if (!whole.starts_with(before) || !whole.starts_with(behind) || behind.size() < before.size() ||
        !is_behind_last) {
      fail(ErrorCode::kInvalid,
           "{}: the template renders the first {} messages otherwise than as the beginning of all "
           "{}, so that what the assistant wrote is not known: put {{% generation %}} … {{% "
           "endgeneration %}} around it in the template, or --no-completions leaves it unmarked",
           where, i + 1, messages.size());
    }
    if (!is_trained(messages[i])) continue;
    spans.push_back({static_cast<int64_t>(before.size()), static_cast<int64_t>(behind.size())});
  }
  return spans;
}

}  // namespace skein
