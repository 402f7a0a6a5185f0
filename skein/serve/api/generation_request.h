// What a client asks for in a body of /v1/completions or /v1/chat/completions.
//
// Fields    those of OpenAI's API, and of vLLM's: top_k, min_p, repetition_penalty,
//           stop_token_ids, ignore_eos, add_special_tokens. A field of the API that Skein does not
//           have is refused by name, and so is one that neither has
// Defaults  OpenAI's: temperature 1, top_p 1, n 1, max_tokens 16 (chat: all that fits)
// Errors    ApiError 400 naming the field
// Source    platform.openai.com/docs/api-reference, docs.vllm.ai (OpenAI-compatible server)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/infer/sampling.h"

namespace skein {

struct GenerationRequest {
  std::string model;  // empty: whichever is served
  std::optional<int64_t> max_tokens;
  int64_t n = 1;                  // texts for each prompt
  std::vector<std::string> stop;  // texts that end a text, and do not belong to it
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;  // an end-of-text token does not end the text
  SamplingOptions sampling;
  bool has_seed = false;  // else each text gets a seed of its own
  // Likeliest tokens that are listed beside each token's log-probability; nothing: none of these.
  std::optional<int64_t> num_logprobs;
  bool tokens_as_ids = false;  // beside log-probabilities a token is "token_id:17"
  bool is_streamed = false;
  bool include_usage = false;  // a stream ends with the numbers of tokens
};

struct CompletionRequest : GenerationRequest {
  using Prompt = std::variant<std::string, std::vector<int32_t>>;
  std::vector<Prompt> prompts;
  bool echo = false;               // the answer begins with the prompt
  bool add_special_tokens = true;  // BOS before a text, where the tokenizer adds it
};

struct ChatRequest : GenerationRequest {
  std::string messages;  // {"messages": […]}, as JSON
};

CompletionRequest completion_request(const Json& body);
ChatRequest chat_request(const Json& body);

}  // namespace skein
