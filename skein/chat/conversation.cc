#include "skein/chat/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "skein/base/error.h"
#include "skein/jinja/values/json_value.h"

namespace skein {
namespace {

using jinja::Dict;
using jinja::Kind;
using jinja::Value;

constexpr std::pair<std::string_view, std::string_view> kRoleNames[] = {
    {"human", "user"},          {"user", "user"},          {"gpt", "assistant"},
    {"assistant", "assistant"}, {"model", "assistant"},    {"chatgpt", "assistant"},
    {"bot", "assistant"},       {"system", "system"},      {"tool", "tool"},
    {"observation", "tool"},    {"tool_response", "tool"}, {"function_response", "tool"}};

constexpr std::array<std::string_view, 3> kReasoning = {"reasoning_content", "thinking",
                                                        "reasoning"};

const char* kind_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
      return "null";
    case Kind::kBool:
      return "a boolean";
    case Kind::kString:
      return "a string";
    case Kind::kDict:
      return "an object";
    case Kind::kSequence:
      return "a list";
    default:
      return "a number";
  }
}

class ConversationReader {
 public:
  ConversationReader(const Dict& row, const std::string& where) : row_(row), where_(where) {}

  Conversation read() {
    if (has("messages")) {
      add_messages("messages");
    } else if (has("conversations")) {
      add_conversations("conversations");
    } else if (has("conversation")) {
      add_conversations("conversation");
    } else if (has("instruction") && has("output")) {
      add_alpaca();
    } else if (has("prompt") && (has("completion") || has("response"))) {
      add_side("prompt", "user");
      add_side(has("completion") ? "completion" : "response", "assistant");
    } else {
      fail(ErrorCode::kInvalid,
           "{}: is no conversation (its keys: {}): expected `messages`, `conversations`, "
           "`instruction` and `output`, or `prompt` and `completion`",
           where_, keys());
    }
    if (made_.messages.empty())
      fail(ErrorCode::kInvalid, "{}: a conversation without messages", where_);
    add_others();
    return std::move(made_);
  }

 private:
  const Value* find(std::string_view key) const {
    const Value* value = row_.find(key);
    return value == nullptr || value->is(Kind::kNone) ? nullptr : value;
  }
  bool has(std::string_view key) const { return find(key) != nullptr; }

  std::string keys() const {
    std::string list;
    for (const auto& [key, value] : row_.entries) {
      if (list.size() > 160) break;
      list += (list.empty() ? "`" : ", `") + key.text() + "`";
    }
    return list.empty() ? "none" : list;
  }

  [[noreturn]] void fail_at(const std::string& key, const Value* found,
                            const char* expected) const {
    fail(ErrorCode::kInvalid, "{}: `{}` is {}: expected {}", where_, key,
         found == nullptr ? "missing" : kind_of(*found), expected);
  }

  const std::string& text(const std::string& name, const Value* value) const {
    if (value == nullptr || !value->is_string()) fail_at(name, value, "a string");
    return value->text();
  }

  const std::vector<Value>& list(const std::string& key) const {
    const Value& value = *find(key);
    if (!value.is(Kind::kSequence)) fail_at(key, &value, "a list of messages");
    used_.push_back(key);
    return value.as_sequence().items;
  }

  void add(std::string_view role, const std::string& content) {
    auto message = std::make_shared<Dict>();
    message->set(Value::string("role"), Value::string(std::string(role)));
    message->set(Value::string("content"), Value::string(content));
    made_.messages.push_back(Value::of(Kind::kDict, std::move(message)));
  }

  void add_messages(const std::string& key) {
    const auto& messages = list(key);
    for (size_t i = 0; i < messages.size(); ++i) {
      const std::string name = fmt::format("{}[{}]", key, i);
      if (!messages[i].is(Kind::kDict)) {
        fail_at(name, &messages[i], "an object with `role` and `content`");
      }
      const Dict& message = messages[i].as_dict();
      if (text(name + ".role", message.find("role")).empty()) {
        fail(ErrorCode::kInvalid,
             "{}: `{}.role` is empty: expected user, assistant, system or tool", where_, name);
      }
      const Value* content = message.find("content");
      const bool is_content = content == nullptr || content->is_string() ||
                              content->is(Kind::kNone) || content->is(Kind::kSequence);
      if (!is_content) fail_at(name + ".content", content, "a string, or a list of parts");
      if (content == nullptr && message.find("tool_calls") == nullptr) {
        fail_at(name + ".content", nullptr, "a string");
      }
      made_.messages.push_back(as_transformers_has_it(message));
    }
  }

  static Value as_transformers_has_it(const Dict& message) {
    const Value* reasoning = nullptr;
    for (const std::string_view name : kReasoning) {
      const Value* value = message.find(name);
      if (reasoning == nullptr && value != nullptr && !value->is(Kind::kNone)) reasoning = value;
    }
    auto made = std::make_shared<Dict>();
    if (reasoning != nullptr) made->set(Value::string("thinking"), *reasoning);
    for (const auto& [key, value] : message.entries) {
      if (!value.is(Kind::kNone)) made->set(key, value);
    }
    if (reasoning != nullptr) made->set(Value::string("reasoning_content"), *reasoning);
    return Value::of(Kind::kDict, std::move(made));
  }

  void add_conversations(const std::string& key) {
    const auto& turns = list(key);
    const bool openai =
        !turns.empty() && turns[0].is(Kind::kDict) && turns[0].as_dict().find("role") != nullptr;
    if (openai) return add_messages(key);
    if (has("system") && !text("system", find("system")).empty()) add_side("system", "system");
    for (size_t i = 0; i < turns.size(); ++i) {
      const std::string name = fmt::format("{}[{}]", key, i);
      if (!turns[i].is(Kind::kDict)) fail_at(name, &turns[i], "an object with `from` and `value`");
      const Dict& turn = turns[i].as_dict();
      const std::string& from = text(name + ".from", turn.find("from"));
      const auto* role = std::find_if(std::begin(kRoleNames), std::end(kRoleNames),
                                      [&](const auto& row) { return row.first == from; });
      if (role == std::end(kRoleNames)) {
        fail(ErrorCode::kInvalid,
             "{}: `{}.from` is \"{}\": expected human, gpt, system or tool (or `messages` with the "
             "template's own roles)",
             where_, name, from);
      }
      add(role->second, text(name + ".value", turn.find("value")));
    }
  }

  // A text, or a list of messages.
  void add_side(const std::string& key, std::string_view role) {
    if (find(key)->is(Kind::kSequence)) return add_messages(key);
    add(role, text(key, find(key)));
    used_.push_back(key);
  }

  void add_alpaca() {
    if (has("system") && !text("system", find("system")).empty()) add_side("system", "system");
    if (has("history")) {
      const auto& pairs = list("history");
      for (size_t i = 0; i < pairs.size(); ++i) {
        const std::string name = fmt::format("history[{}]", i);
        if (!pairs[i].is(Kind::kSequence) || pairs[i].as_sequence().items.size() != 2) {
          fail_at(name, &pairs[i], "a pair of texts");
        }
        add("user", text(name + "[0]", &pairs[i].as_sequence().items[0]));
        add("assistant", text(name + "[1]", &pairs[i].as_sequence().items[1]));
      }
    }
    std::string question = text("instruction", find("instruction"));
    if (has("input") && !text("input", find("input")).empty()) {
      question += (question.empty() ? "" : "\n") + text("input", find("input"));
    }
    add("user", question);
    add("assistant", text("output", find("output")));
    for (const char* key : {"instruction", "input", "output"}) used_.emplace_back(key);
  }

  void add_others() {
    auto others = std::make_shared<Dict>();
    for (const auto& [key, value] : row_.entries) {
      const bool is_used = std::find(used_.begin(), used_.end(), key.text()) != used_.end();
      if (is_used) continue;
      // Tables that cannot hold objects of any shape have them as JSON.
      if (key.text() == "tools" && value.is_string()) {
        others->set(key, value.text().empty()
                             ? Value::none()
                             : jinja::json_value(value.text(), where_ + ": `tools`"));
      } else {
        others->set(key, value);
      }
    }
    made_.others = Value::of(Kind::kDict, std::move(others));
  }

  const Dict& row_;
  const std::string& where_;
  Conversation made_;
  mutable std::vector<std::string> used_;
};

}  // namespace

Conversation conversation_of(std::string_view object, const std::string& where) {
  const Value row = jinja::json_value(object, where);
  if (!row.is(Kind::kDict)) {
    fail(ErrorCode::kInvalid, "{}: is {}: expected an object with a conversation", where,
         kind_of(row));
  }
  return ConversationReader(row.as_dict(), where).read();
}

bool looks_like_conversation(std::string_view keys) {
  const auto has = [&](std::string_view key) {
    return keys.find(fmt::format("`{}`", key)) != std::string_view::npos;
  };
  return has("messages") || has("conversations") || has("conversation") ||
         (has("instruction") && has("output")) ||
         (has("prompt") && (has("completion") || has("response")));
}

bool is_conversation_key(std::string_view key) {
  constexpr std::string_view kKeys[] = {"messages", "conversations", "conversation", "system",
                                        "history",  "instruction",   "input",        "output",
                                        "prompt",   "completion",    "response"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

}  // namespace skein
