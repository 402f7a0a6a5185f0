#include "skein/serve/api/generation_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "skein/base/text/json_text.h"
#include "skein/serve/api/api_error.h"
#include "skein/serve/api/json_fields.h"

namespace skein {
namespace {

constexpr int64_t kMostTexts = 128;  // for a prompt
constexpr int64_t kMostLogprobs = 20;
constexpr size_t kMostStops = 64;
constexpr size_t kMostPrompts = 4096;  // and texts of all prompts together
constexpr size_t kMostTokens = size_t{1} << 24;
constexpr auto kMostWhole = std::numeric_limits<int32_t>::max();

// {"1234": -100}
std::vector<std::pair<int32_t, float>> bias_of(JsonFields& fields) {
  constexpr const char* kName = "logit_bias";
  constexpr double kMost = 100;
  const Json* json = fields.find(kName);
  std::vector<std::pair<int32_t, float>> bias;
  if (json == nullptr) return bias;
  const std::string expected = "an object of token ids, each with a number from -100 to 100";
  if (!json->is_object()) fields.fail_at(kName, expected);
  for (const auto& [id, value] : json->items()) {
    int32_t token = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), token);
    const bool is_id = error == std::errc() && end == id.data() + id.size() && token >= 0;
    const bool is_bias = value.is_number() && value >= -kMost && value <= kMost;
    if (!is_id || !is_bias) fields.fail_at(kName, expected);
    bias.emplace_back(token, value.get<float>());
  }
  return bias;
}

void read_sampling(JsonFields& fields, GenerationRequest& request) {
  SamplingOptions& sampling = request.sampling;
  sampling.temperature = fields.number("temperature", 0, 100).value_or(1);
  sampling.top_p = fields.number("top_p", 0, 1).value_or(1);
  sampling.top_k = fields.whole("top_k", -1, kMostWhole).value_or(0);
  if (sampling.top_k < 0) sampling.top_k = 0;  // vLLM's -1: all
  sampling.min_p = fields.number("min_p", 0, 1).value_or(0);
  sampling.repetition_penalty = fields.number("repetition_penalty", 0.01, 100).value_or(1);
  sampling.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  sampling.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  sampling.bias = bias_of(fields);
  constexpr auto kLeast = std::numeric_limits<int64_t>::min();
  const auto seed = fields.whole("seed", kLeast, std::numeric_limits<int64_t>::max());
  request.has_seed = seed.has_value();
  sampling.seed = static_cast<uint64_t>(seed.value_or(0));
}

void read_common(JsonFields& fields, GenerationRequest& request) {
  request.model = fields.text("model").value_or("");
  request.n = fields.whole("n", 1, kMostTexts).value_or(1);
  request.stop = fields.texts("stop", kMostStops);
  if (std::count(request.stop.begin(), request.stop.end(), "") > 0) {
    fields.fail_at("stop", "texts that are not empty");
  }
  request.stop_token_ids = fields.token_ids("stop_token_ids", kMostStops);
  request.ignore_eos = fields.flag("ignore_eos").value_or(false);
  request.is_streamed = fields.flag("stream").value_or(false);
  if (const Json* options = fields.find("stream_options")) {
    if (!request.is_streamed) {
      throw ApiError(400, "stream_options is given, and stream is not true: remove one of them",
                     "stream_options");
    }
    JsonFields inner(*options, "stream_options.");
    request.include_usage = inner.flag("include_usage").value_or(false);
    inner.pass_over("include_obfuscation");
    inner.refuse_others();
  }
  read_sampling(fields, request);
  // What only labels a request.
  for (const char* name :
       {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"}) {
    fields.pass_over(name);
  }
}

std::vector<CompletionRequest::Prompt> prompts_of(JsonFields& fields) {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) throw ApiError(400, "prompt is missing: expected a text", "prompt");
  if (prompt->is_string()) return {prompt->get<std::string>()};
  if (!prompt->is_array() || prompt->empty() || prompt->size() > kMostTokens) {
    fields.fail_at("prompt",
                   "a string, a list of strings, a list of token ids, or a list of such "
                   "lists");
  }
  if (prompt->front().is_number()) return {token_ids_of(*prompt, "prompt", kMostTokens)};
  if (prompt->size() > kMostPrompts) {
    fields.fail_at("prompt", fmt::format("at most {} prompts", kMostPrompts));
  }
  std::vector<CompletionRequest::Prompt> prompts;
  for (const Json& item : *prompt) {
    if (item.is_string()) {
      prompts.emplace_back(item.get<std::string>());
    } else {
      prompts.emplace_back(token_ids_of(item, "prompt", kMostTokens));
    }
  }
  return prompts;
}

}  // namespace

CompletionRequest completion_request(const Json& body) {
  JsonFields fields(body);
  CompletionRequest request;
  request.prompts = prompts_of(fields);
  request.max_tokens = fields.whole("max_tokens", 0, kMostWhole).value_or(16);
  request.num_logprobs = fields.whole("logprobs", 0, kMostLogprobs);
  request.echo = fields.flag("echo").value_or(false);
  request.tokens_as_ids = fields.flag("return_tokens_as_token_ids").value_or(false);
  request.add_special_tokens = fields.flag("add_special_tokens").value_or(true);
  read_common(fields, request);
  if (request.prompts.size() * static_cast<size_t>(request.n) > kMostPrompts) {
    throw ApiError(
        400,
        fmt::format("{} prompts with n {} are {} texts: expected at most {}",
                    request.prompts.size(), request.n,
                    request.prompts.size() * static_cast<size_t>(request.n), kMostPrompts),
        "n");
  }
  if (request.max_tokens == 0 && !request.echo) {
    throw ApiError(400, "max_tokens is 0 and echo is not true: nothing would be answered",
                   "max_tokens");
  }
  fields.refuse("suffix", "this model continues texts, it does not fill them in", "");
  const int64_t best_of = fields.whole("best_of", 1, kMostTexts).value_or(request.n);
  if (best_of != request.n) {
    throw ApiError(400,
                   fmt::format("best_of {} is not supported beside n {}: ask for n texts, and "
                               "choose among them",
                               best_of, request.n),
                   "best_of", "unsupported_parameter");
  }
  fields.refuse_others();
  return request;
}

ChatRequest chat_request(const Json& body) {
  JsonFields fields(body);
  ChatRequest request;
  const Json* messages = fields.find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) {
    throw ApiError(400, "messages is missing or empty: expected a list of {\"role\", \"content\"}",
                   "messages");
  }
  request.messages = json_text(Json{{"messages", *messages}});
  const auto newer = fields.whole("max_completion_tokens", 1, kMostWhole);
  const auto older = fields.whole("max_tokens", 1, kMostWhole);
  request.max_tokens = newer ? newer : older;
  const bool wants_logprobs = fields.flag("logprobs").value_or(false);
  const auto num_top = fields.whole("top_logprobs", 0, kMostLogprobs);
  if (num_top && !wants_logprobs) {
    throw ApiError(400, "top_logprobs is given, and logprobs is not true: set logprobs",
                   "top_logprobs");
  }
  if (wants_logprobs) request.num_logprobs = num_top.value_or(0);
  read_common(fields, request);
  for (const char* name : {"tools", "functions"}) {
    fields.refuse(name, "calls of functions are not read from the model's text", Json::array());
  }
  fields.refuse("tool_choice", "calls of functions are not read from the model's text", "none");
  fields.refuse("function_call", "calls of functions are not read from the model's text", "none");
  fields.refuse("parallel_tool_calls", "calls of functions are not read", false);
  fields.refuse("response_format", "the form of a text cannot be forced", Json{{"type", "text"}});
  fields.refuse("audio", "the model writes texts");
  fields.refuse("modalities", "the model writes texts", Json{"text"});
  fields.refuse("prediction", "texts are not predicted");
  fields.refuse("reasoning_effort", "the model has no such setting", "none");
  fields.refuse("verbosity", "the model has no such setting");
  fields.refuse("web_search_options", "nothing is fetched");
  fields.refuse_others();
  return request;
}

}  // namespace skein
