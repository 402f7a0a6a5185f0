// What /metrics tells of a server, in Prometheus's text format.
#pragma once

#include <cstdint>
#include <string>

#include "skein/serve/engine_loop.h"
#include "skein/serve/http/http_server.h"

namespace skein {

struct ServerMetrics {
  std::string model;
  EngineLoop::Counts engine;
  HttpCounts http;
  int64_t answered = 0, prompt_tokens = 0, completion_tokens = 0;  // of answers that are complete
};

std::string metrics_page(const ServerMetrics& metrics);

}  // namespace skein
