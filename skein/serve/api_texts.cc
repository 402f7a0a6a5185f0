// Requests that carry text: they become texts of the engine, or tokens.
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/serve/api/api_error.h"
#include "skein/serve/api/generation_request.h"
#include "skein/serve/api/json_fields.h"
#include "skein/serve/api_server.h"
#include "skein/serve/text_answer.h"

namespace skein {
namespace {

constexpr const char* kJson = "application/json";
constexpr size_t kMostTokens = size_t{1} << 24;  // of a request to /detokenize

Json body_of(const HttpRequest& request) {
  try {
    return parse_json(request.body, "the body");
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  }
}

uint64_t random_seed() {
  static thread_local std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// Of tokens that both the model and its tokenizer have: rows that pad the vocabulary have no text.
void check_ids(const std::vector<int32_t>& ids, const ServedModel& served, const char* field) {
  for (const int32_t id : ids) {
    if (id < served.vocab_size() && served.tokenizer().has_token(id)) continue;
    throw ApiError(400,
                   fmt::format("{} has the token id {}, which has no token: expected ids from 0 to "
                               "{} that the tokenizer has",
                               field, id, served.tokenizer().vocab_size() - 1),
                   field);
  }
}

}  // namespace

// The texts that a request asks for.
struct ApiServer::Asked {
  struct Prompt {
    std::vector<int32_t> tokens;
    std::string text;
  };
  std::vector<Prompt> prompts;
  TextAnswer::Options answer;
  const char* prompt_field = "prompt";
};

void ApiServer::complete(const HttpRequest& request, const Reply& reply) {
  const auto served = model();
  CompletionRequest asked = completion_request(body_of(request));
  Asked made;
  const Tokenizer& tokenizer = served->tokenizer();
  for (auto& prompt : asked.prompts) {
    Asked::Prompt& one = made.prompts.emplace_back();
    if (auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
      check_ids(*ids, *served, "prompt");
      one.tokens = std::move(*ids);
      if (asked.echo) one.text = tokenizer.decode(one.tokens);
    } else {
      one.text = std::get<std::string>(prompt);
      if (asked.add_special_tokens) {
        one.tokens = tokens_with_bos(tokenizer, one.text);
      } else {
        tokenizer.parse(one.text, one.tokens);
      }
    }
  }
  made.answer.echo = asked.echo;
  made.answer.request = std::move(asked);
  answer(served, std::move(made), reply);
}

void ApiServer::chat(const HttpRequest& request, const Reply& reply) {
  const auto served = model();
  if (served->chat() == nullptr) {
    throw ApiError(400,
                   "the model's tokenizer has no chat template: expected chat_template.jinja or "
                   "chat_template in tokenizer_config.json; /v1/completions continues any text",
                   "messages", "no_chat_template");
  }
  ChatRequest asked = chat_request(body_of(request));
  Asked made;
  made.prompt_field = "messages";
  try {
    const std::string text =
        served->chat()->prompt(asked.messages, "messages", {.now = local_time()});
    Asked::Prompt& prompt = made.prompts.emplace_back();
    prompt.tokens = tokens_with_bos(served->tokenizer(), text);
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "messages");
  }
  made.answer.is_chat = true;
  made.answer.request = std::move(asked);
  answer(served, std::move(made), reply);
}

void ApiServer::answer(const std::shared_ptr<const ServedModel>& served, Asked asked,
                       const Reply& reply) {
  GenerationRequest& request = asked.answer.request;
  if (!request.model.empty() && request.model != served->name()) {
    throw ApiError(404,
                   fmt::format("there is no model \"{}\" here: expected \"{}\"", request.model,
                               served->name()),
                   "model", "model_not_found");
  }
  for (const auto& [id, bias] : request.sampling.bias) {
    check_ids({id}, *served, "logit_bias");
  }
  if (!request.has_seed) request.sampling.seed = random_seed();
  asked.answer.id =
      fmt::format("{}-{:016x}", asked.answer.is_chat ? "chatcmpl" : "cmpl", random_seed());
  asked.answer.on_done = [this](const AnswerUsage& usage) {
    ++num_answered_;
    prompt_tokens_ += usage.prompt_tokens;
    completion_tokens_ += usage.completion_tokens;
  };
  const bool is_scored = asked.answer.echo && request.num_logprobs.has_value();
  const int64_t limit = served->max_length();
  const std::optional<int64_t> max_tokens = request.max_tokens;
  const auto texts = std::make_shared<TextAnswer>(served, reply, std::move(asked.answer));
  for (Asked::Prompt& prompt : asked.prompts) {
    const auto size = std::ssize(prompt.tokens);
    if (size == 0)
      throw ApiError(400, "a prompt has no token: expected a text", asked.prompt_field);
    // lm-evaluation-harness asks for one token more than it scores, and drops its entry. The last
    // token of a text that is scored alone need not be read.
    const bool needs_filler = is_scored && max_tokens == 1 && size == limit + 1;
    const bool is_only_scored = needs_filler || max_tokens == 0;
    const int64_t most = limit + (is_only_scored && is_scored ? 1 : 0);
    const int64_t wanted =
        is_only_scored ? 0 : max_tokens.value_or(std::max<int64_t>(1, limit - size));
    if (size + wanted > most) {
      throw ApiError(
          400,
          fmt::format(
              "the model is meant for {} tokens, and {} has {} with {} more to come: expected "
              "a shorter text or fewer tokens",
              limit, asked.prompt_field, size, wanted),
          asked.prompt_field, "context_length_exceeded");
    }
    texts->add_prompt(std::move(prompt.tokens), std::move(prompt.text), wanted, needs_filler);
  }
  std::vector<TextRequest> requests = texts->take_requests();
  if (requests.empty()) return;
  const auto group = loops_->submit(std::move(requests),
                                    [texts](const std::string& why) { texts->fail(400, why); });
  if (!group) {
    if (loops_->is_broken())
      throw ApiError(503, "the engine has failed; the server's log says why");
    throw ApiError(429, "too many texts wait for the model: ask again later", "", "queue_full");
  }
  reply->on_cancel([this, number = *group] { loops_->cancel(number); });
}

void ApiServer::tokenize(const HttpRequest& request, const Reply& reply) {
  const auto served = model();
  const Json body = body_of(request);
  JsonFields fields(body);
  fields.pass_over("model");
  const std::optional<std::string> prompt = fields.text("prompt");
  const bool adds = fields.flag("add_special_tokens").value_or(true);
  fields.refuse_others();
  if (!prompt) throw ApiError(400, "prompt is missing: expected a text", "prompt");
  std::vector<int32_t> ids;
  if (adds) {
    ids = tokens_with_bos(served->tokenizer(), *prompt);
  } else {
    served->tokenizer().parse(*prompt, ids);
  }
  OrderedJson json;
  json["count"] = ids.size();
  json["max_model_len"] = served->max_length();
  json["tokens"] = ids;
  reply->send(200, kJson, json_text(json) + "\n");
}

void ApiServer::detokenize(const HttpRequest& request, const Reply& reply) {
  const auto served = model();
  const Json body = body_of(request);
  JsonFields fields(body);
  fields.pass_over("model");
  if (fields.find("tokens") == nullptr) {
    throw ApiError(400, "tokens is missing: expected a list of token ids", "tokens");
  }
  const std::vector<int32_t> ids = fields.token_ids("tokens", kMostTokens);
  fields.refuse_others();
  check_ids(ids, *served, "tokens");
  OrderedJson json;
  json["prompt"] = served->tokenizer().decode(ids);
  reply->send(200, kJson, json_text(json) + "\n");
}

}  // namespace skein
