#include "skein/serve/api_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/serve/api/api_error.h"
#include "skein/serve/metrics_page.h"

namespace skein {
namespace {

constexpr const char* kJson = "application/json";

// Takes as long whatever the texts have in common.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned different = a.size() != b.size();
  for (size_t i = 0; i < a.size() && !b.empty(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i % b.size()]);
  }
  return different == 0;
}

HttpServerOptions with_json_errors(HttpServerOptions options) {
  options.error_form = [](int status, std::string_view message) {
    return HttpErrorBody{kJson, api_error_body(status, message)};
  };
  return options;
}

}  // namespace

ApiServer::ApiServer(const ApiServerOptions& options)
    : options_(options),
      model_(std::make_shared<const ServedModel>(options.model)),
      loops_(std::make_unique<EngineLoops>(
          options.model.replicas,
          [&](int64_t replica) {
            devices_.push_back(
                options.model.engine.make_device(replica * options.model.engine.tensor));
            return model_->make_engine(*devices_.back(), replica);
          },
          options.most_waiting)) {
  const std::lock_guard lock(mutex_);  // requests come before the constructor has returned
  http_ = std::make_unique<HttpServer>(
      with_json_errors(options.http),
      [this](const HttpRequest& request, const Reply& reply) { handle(request, reply); });
}

ApiServer::~ApiServer() { stop(std::chrono::milliseconds(0)); }

std::shared_ptr<const ServedModel> ApiServer::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

int64_t ApiServer::stop(std::chrono::milliseconds grace) {
  if (is_stopping_.exchange(true)) return 0;
  const auto end = std::chrono::steady_clock::now() + grace;
  const int64_t num_cut = http_->stop(grace);  // what is under way continues meanwhile
  const auto left =
      std::max(std::chrono::steady_clock::duration(0), end - std::chrono::steady_clock::now());
  loops_->stop(std::chrono::duration_cast<std::chrono::milliseconds>(left));
  if (reloading_.joinable()) reloading_.join();
  return num_cut;
}

void ApiServer::handle(const HttpRequest& request, const Reply& reply) {
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
  if (loops_->is_broken()) throw ApiError(503, "the engine has failed; the server's log says why");
  if (is_stopping_) throw ApiError(503, "the server stops");
  OrderedJson json;
  json["status"] = "ok";
  reply->send(200, kJson, json_text(json) + "\n");
}

void ApiServer::tell_metrics(const Reply& reply) {
  ServerMetrics metrics;
  metrics.model = model()->name();
  metrics.engine = loops_->counts();
  {
    const std::lock_guard lock(mutex_);
    metrics.http = http_->counts();
  }
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
    int status = 200;
    std::string body;
    try {
      const auto loaded = std::make_shared<const ServedModel>(options_.model);
      loops_->change_engines([&](int64_t replica) {
        return loaded->make_engine(*devices_[static_cast<size_t>(replica)], replica);
      });
      {
        const std::lock_guard lock(mutex_);
        model_ = loaded;
      }
      log::info("loaded {}", loaded->path());
      OrderedJson json;
      json["model"] = loaded->name();
      json["root"] = loaded->path();
      body = json_text(json) + "\n";
    } catch (const std::exception& error) {
      log::error("the model is not loaded again: {}", error.what());
      status = 500;
      body = api_error_body(status, error.what());
    }
    is_reloading_ = false;  // whoever has the answer may ask again
    reply->send(status, kJson, body);
  });
}

}  // namespace skein
