// The OpenAI-compatible server of one model.
//
//   POST /v1/completions, /v1/chat/completions   texts, whole or streamed
//   GET  /v1/models, /v1/models/NAME             what is served
//   POST /tokenize, /detokenize; GET /tokenizer_info
//   GET  /health, /metrics                       for those who watch it; /health needs no key
//   POST /reload                                 a run's newest checkpoint takes the place of this
//
// Queue    at most `most_waiting` texts wait for the engine; more get 429 with Retry-After
// Key      of those of `api_keys`, "Authorization: Bearer KEY"; without keys nobody needs one
// Errors   {"error": {"message", "type", "param", "code"}} (api_error.h). Those of HttpServer and
//          ServedModel when it is made
// Threads  stop() from any; HTTP has threads of its own, the engine one
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "skein/runtime/executor.h"
#include "skein/serve/engine_loops.h"
#include "skein/serve/http/http_server.h"
#include "skein/serve/served_model.h"

namespace skein {

struct ApiServerOptions {
  ServedModelOptions model;
  HttpServerOptions http;
  std::vector<std::string> api_keys;
  int64_t most_waiting = 256;
};

class ApiServer {
 public:
  // Answers requests when it returns.
  explicit ApiServer(const ApiServerOptions& options);
  ~ApiServer();

  std::string url() const { return http_->url(); }
  std::shared_ptr<const ServedModel> model() const;
  const Device& device() const { return *devices_[0]; }  // of the first replica

  // Accepts no more, answers what it has within `grace`, and ends. Returns how many connections
  // were cut off.
  int64_t stop(std::chrono::milliseconds grace);

 private:
  using Reply = std::shared_ptr<HttpReply>;
  void handle(const HttpRequest& request, const Reply& reply);
  void check_key(const HttpRequest& request) const;
  void complete(const HttpRequest& request, const Reply& reply);
  void chat(const HttpRequest& request, const Reply& reply);
  void tokenize(const HttpRequest& request, const Reply& reply);
  void detokenize(const HttpRequest& request, const Reply& reply);
  void tell_tokenizer(const Reply& reply);
  void tell_models(const HttpRequest& request, const Reply& reply);
  void tell_health(const Reply& reply);
  void tell_metrics(const Reply& reply);
  void reload(const Reply& reply);
  struct Asked;
  void answer(const std::shared_ptr<const ServedModel>& model, Asked asked, const Reply& reply);

  const ApiServerOptions options_;
  std::vector<std::unique_ptr<Device>> devices_;  // the first of each replica
  mutable std::mutex mutex_;                      // of model_ and http_
  std::shared_ptr<const ServedModel> model_;
  std::unique_ptr<EngineLoops> loops_;
  std::atomic<int64_t> num_answered_ = 0, prompt_tokens_ = 0, completion_tokens_ = 0;
  std::atomic<bool> is_reloading_ = false, is_stopping_ = false;
  std::thread reloading_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace skein
