// A conversation of a JSON object, whatever collection it is of, as chat templates take it.
//
//   {"messages": [{"role", "content", …}]}         as it is; tool_calls and other keys stay
//   {"conversations": [{"from", "value"}]}         ShareGPT: human, gpt, system, tool
//   {"instruction", "input", "output"}             Alpaca: the input behind the instruction, on a
//                                                  line of its own; also system, and history of
//                                                  pairs
//   {"prompt", "completion"}                       texts, or lists of messages; also "response" in
//                                                  place of "completion"
//
// Keys of messages that are null are left out, and reasoning is passed by all of its names, as
// transformers does it. What else the object holds is passed to the template, tools and documents
// among it.
//
// Errors   Error{kInvalid, "WHERE: …"} that names the key, what was found and what was expected
#pragma once

#include <string>
#include <string_view>

#include "skein/jinja/values/value.h"

namespace skein {

struct Conversation {
  std::vector<jinja::Value> messages;  // dicts with a role
  jinja::Value others;                 // a dict: the variables that the object gives besides
};

// `where` begins errors: "chat.jsonl:3".
Conversation conversation_of(std::string_view object, const std::string& where);

// Whether an object with these keys, "`a`, `b`", may be a conversation: then errors name
// --chat-template.
bool looks_like_conversation(std::string_view keys);
constexpr const char* kChatAdvice =
    "; --chat-template renders conversations, with a template or the folder of a tokenizer";

// Whether conversations are read from a key of this name, among others.
bool is_conversation_key(std::string_view key);

}  // namespace skein
