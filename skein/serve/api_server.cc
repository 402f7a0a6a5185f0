#include "skein/serve/api_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/serve/api/api_error.h"
#include "skein/serve/api/generation_request.h"
#include "skein/serve/api/json_fields.h"
#include "skein/serve/metrics_page.h"
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

// Takes as long whatever the texts have in common.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned different = a.size() != b.size();
  for (size_t i = 0; i < a.size() && !b.empty(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i % b.size()]);
  }
  return different == 0;
}

std::tm now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return local;
}

HttpServerOptions with_json_errors(HttpServerOptions options) {
  options.error_form = [](int status, std::string_view message) {
    return HttpErrorBody{kJson, api_error_body(status, message)};
  };
  return options;
}

void check_ids(const std::vector<int32_t>& ids, int64_t vocab_size, const char* field) {
  for (const int32_t id : ids) {
    if (id < vocab_size) continue;
    throw ApiError(400,
                   fmt::format("{} has the token id {}: expected 0 to {}, the model's vocabulary",
                               field, id, vocab_size - 1),
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

ApiServer::ApiServer(const ApiServerOptions& options, const MakeDevice& make_device)
    : options_(options),
      model_(std::make_shared<const ServedModel>(options.model)),
      loop_(std::make_unique<EngineLoop>(
          [&] {
            device_ = make_device();
            return model_->make_engine(*device_);
          },
          options.most_waiting)),
      http_(std::make_unique<HttpServer>(
          with_json_errors(options.http),
          [this](const HttpRequest& request, const Reply& reply) { handle(request, reply); })) {}

ApiServer::~ApiServer() { stop(std::chrono::milliseconds(0)); }

std::shared_ptr<const ServedModel> ApiServer::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

void ApiServer::stop(std::chrono::milliseconds grace) {
  if (is_stopping_.exchange(true)) return;
  const auto end = std::chrono::steady_clock::now() + grace;
  http_->stop(grace);  // what is under way goes on meanwhile
  const auto left =
      std::max(std::chrono::steady_clock::duration(0), end - std::chrono::steady_clock::now());
  loop_->stop(std::chrono::duration_cast<std::chrono::milliseconds>(left));
  if (reloading_.joinable()) reloading_.join();
}

void ApiServer::handle(const HttpRequest& request, const Reply& reply) {
  ++num_requests_;
  struct Route {
    const char *method, *path;
    std::function<void()> run;
  };
  const Route routes[] = {
      {"GET", "/health", [&] { tell_health(reply); }},
      {"GET", "/metrics", [&] { tell_metrics(reply); }},
      {"GET", "/v1/models", [&] { tell_models(request, reply); }},
      {"POST", "/v1/completions", [&] { complete(request, reply); }},
      {"POST", "/v1/chat/completions", [&] { chat(request, reply); }},
      {"POST", "/tokenize", [&] { tokenize(request, reply); }},
      {"POST", "/detokenize", [&] { detokenize(request, reply); }},
      {"GET", "/tokenizer_info", [&] { tell_tokenizer(reply); }},
      {"POST", "/reload", [&] { reload(reply); }},
  };
  try {
    if (request.path != "/health") check_key(request);
    const bool is_model = request.path.starts_with("/v1/models/");
    const std::string path = is_model ? "/v1/models" : request.path;
    const Route* other = nullptr;
    for (const Route& route : routes) {
      if (path != route.path) continue;
      const bool fits = request.method == route.method ||
                        (request.method == "HEAD" && std::string_view(route.method) == "GET");
      if (fits) return route.run();
      other = &route;
    }
    if (other != nullptr) {
      const ApiError error(405,
                           fmt::format("{} {}: expected {}", request.method, path, other->method));
      reply->send(error.status(), kJson, error.body(), {{"Allow", other->method}});
      return;
    }
    throw ApiError(404,
                   "there is no such page: expected /v1/completions, /v1/chat/completions, "
                   "/v1/models, /tokenize, /detokenize, /tokenizer_info, /health, /metrics or "
                   "/reload");
  } catch (const ApiError& error) {
    std::vector<HttpHeader> headers;
    if (error.status() == 401) headers.push_back({"WWW-Authenticate", "Bearer"});
    if (error.status() == 429) headers.push_back({"Retry-After", "1"});
    reply->send(error.status(), kJson, error.body(), headers);
  } catch (const std::exception& error) {
    log::error("{} {}: {}", request.method, request.path, error.what());
    reply->send(500, kJson, api_error_body(500, "the server has failed; its log says why"));
  }
}

void ApiServer::check_key(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return;
  const std::string* header = request.header("Authorization");
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view given = header == nullptr ? std::string_view() : *header;
  bool is_known = false;
  if (given.size() > kBearer.size() &&
      equal_in_any_case(given.substr(0, kBearer.size()), kBearer)) {
    given.remove_prefix(kBearer.size());
    for (const std::string& key : options_.api_keys) {
      is_known = equal_in_constant_time(given, key) || is_known;
    }
  }
  if (is_known) return;
  throw ApiError(401,
                 header == nullptr ? "this server needs a key: expected \"Authorization: Bearer "
                                     "KEY\""
                                   : "the key in Authorization is not one of this server's",
                 "", "invalid_api_key");
}

void ApiServer::complete(const HttpRequest& request, const Reply& reply) {
  const auto served = model();
  CompletionRequest asked = completion_request(body_of(request));
  Asked made;
  const Tokenizer& tokenizer = served->tokenizer();
  for (auto& prompt : asked.prompts) {
    Asked::Prompt& one = made.prompts.emplace_back();
    if (auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
      check_ids(*ids, served->vocab_size(), "prompt");
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
    const std::string text = served->chat()->prompt(asked.messages, "messages", {.now = now()});
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
    check_ids({id}, served->vocab_size(), "logit_bias");
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
  const auto group = loop_->submit(std::move(requests),
                                   [texts](const std::string& why) { texts->fail(400, why); });
  if (!group) {
    if (loop_->is_broken()) throw ApiError(503, "the engine has failed; the server's log says why");
    throw ApiError(429, "too many texts wait for the model: ask again later", "", "queue_full");
  }
  reply->on_cancel([this, number = *group] { loop_->cancel(number); });
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
  check_ids(ids, served->tokenizer().vocab_size(), "tokens");
  OrderedJson json;
  json["prompt"] = served->tokenizer().decode(ids);
  reply->send(200, kJson, json_text(json) + "\n");
}

void ApiServer::tell_tokenizer(const Reply& reply) {
  const auto served = model();
  OrderedJson json;
  for (const auto& [name, token] : served->special_tokens()) json[name] = token;
  const ChatRenderer* chat = served->chat();
  json["chat_template"] =
      chat == nullptr ? OrderedJson(nullptr) : OrderedJson(chat->options().source.source);
  json["vocab_size"] = served->tokenizer().vocab_size();
  json["max_model_len"] = served->max_length();
  reply->send(200, kJson, json_text(json) + "\n");
}

void ApiServer::tell_models(const HttpRequest& request, const Reply& reply) {
  const auto served = model();
  OrderedJson json;
  json["id"] = served->name();
  json["object"] = "model";
  json["created"] = served->created();
  json["owned_by"] = "skein";
  json["root"] = served->path();
  json["max_model_len"] = served->max_length();
  constexpr std::string_view kModels = "/v1/models";
  const std::string_view name = std::string_view(request.path).substr(kModels.size());
  if (name.empty() || name == "/") {
    OrderedJson list;
    list["object"] = "list";
    list["data"] = OrderedJson::array();
    list["data"].push_back(std::move(json));
    json = std::move(list);
  } else if (name.substr(1) != served->name()) {
    throw ApiError(404,
                   fmt::format("there is no model \"{}\" here: expected \"{}\"", name.substr(1),
                               served->name()),
                   "model", "model_not_found");
  }
  reply->send(200, kJson, json_text(json) + "\n");
}

void ApiServer::tell_health(const Reply& reply) {
  if (loop_->is_broken()) throw ApiError(503, "the engine has failed; the server's log says why");
  if (is_stopping_) throw ApiError(503, "the server stops");
  OrderedJson json;
  json["status"] = "ok";
  reply->send(200, kJson, json_text(json) + "\n");
}

void ApiServer::tell_metrics(const Reply& reply) {
  ServerMetrics metrics;
  metrics.model = model()->name();
  metrics.engine = loop_->counts();
  metrics.http = http_->counts();
  metrics.answered = num_answered_;
  metrics.prompt_tokens = prompt_tokens_;
  metrics.completion_tokens = completion_tokens_;
  reply->send(200, "text/plain; version=0.0.4", metrics_page(metrics));
}

// The model that is there answers meanwhile; both are in memory until the last text of the old one
// has ended.
void ApiServer::reload(const Reply& reply) {
  if (is_stopping_) throw ApiError(503, "the server stops");
  if (is_reloading_.exchange(true)) {
    throw ApiError(409, "the model is being loaded again already", "", "reloading");
  }
  if (reloading_.joinable()) reloading_.join();
  reloading_ = std::thread([this, reply] {
    try {
      const auto loaded = std::make_shared<const ServedModel>(options_.model);
      loop_->change_engine([&] {
        auto engine = loaded->make_engine(*device_);
        const std::lock_guard lock(mutex_);
        model_ = loaded;
        return engine;
      });
      log::info("loaded {}", loaded->path());
      OrderedJson json;
      json["model"] = loaded->name();
      json["root"] = loaded->path();
      reply->send(200, kJson, json_text(json) + "\n");
    } catch (const std::exception& error) {
      log::error("the model is not loaded again: {}", error.what());
      reply->send(500, kJson, api_error_body(500, error.what()));
    }
    is_reloading_ = false;
  });
}

}  // namespace skein
