// The JSON of answers, in the forms of OpenAI's API.
//
//   completion   {"id", "object": "text_completion", "created", "model", "choices": [{"index",
//                "text", "logprobs": {"tokens", "token_logprobs", "top_logprobs", "text_offset"},
//                "finish_reason"}], "usage"}
//   chat         {…, "object": "chat.completion", "choices": [{"index", "message": {"role",
//                "content", "refusal"}, "logprobs": {"content": [{"token", "logprob", "bytes",
//                "top_logprobs"}], "refusal"}, "finish_reason"}], "usage"}
//   streamed     the same in pieces: "text", or "delta" in place of "message" in an object
//                "chat.completion.chunk"; server-sent events, and "[DONE]" behind the last
//
// Several tokens may have one text (bytes that are no character): of these top_logprobs of a
// completion, an object, has the likeliest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

struct AnsweredToken {
  std::string text;
  std::string name = {};         // shown in place of the text, which offsets count; empty: the text
  std::optional<float> logprob;  // the first token of a text has none
  std::vector<std::pair<std::string, float>> top;  // likeliest first; the token itself is not
                                                   // among them unless it is one of the likeliest
};

// A part of a text, or a whole one.
struct AnsweredText {
  int64_t index = 0;
  std::string text;
  std::vector<AnsweredToken> tokens;
  int64_t offset = 0;         // characters of the text before this part
  std::string finish_reason;  // "stop", "length"; "": it continues
};

struct AnswerUsage {
  int64_t prompt_tokens = 0, completion_tokens = 0;
};

struct AnswerForm {
  std::string id, model;
  int64_t created = 0;
  bool is_chat = false;
  bool has_logprobs = false;
};

std::string whole_answer(const AnswerForm& form, const std::vector<AnsweredText>& texts,
                         const AnswerUsage& usage);

// Server-sent events of a stream. `with_null_usage`: the stream will end with its usage.
std::string first_event(const AnswerForm& form, int64_t index, bool with_null_usage);  // chat alone
std::string text_event(const AnswerForm& form, const AnsweredText& part, bool with_null_usage);
std::string usage_event(const AnswerForm& form, const AnswerUsage& usage);
std::string error_event(const std::string& message);
constexpr const char* kLastEvent = "data: [DONE]\n\n";

}  // namespace skein
