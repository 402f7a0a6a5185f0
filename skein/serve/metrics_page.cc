#include "skein/serve/metrics_page.h"

#include <fmt/format.h>

#include <iterator>

namespace skein {

std::string metrics_page(const ServerMetrics& metrics) {
  std::string page;
  const auto row = [&](const char* name, const char* type, const char* help, int64_t value) {
    fmt::format_to(std::back_inserter(page),
                   "# HELP skein_serve_{0} {1}\n# TYPE skein_serve_{0} {2}\nskein_serve_{0} {3}\n",
                   name, help, type, value);
  };
  const TextEngine::Counts& engine = metrics.engine.engine;
  row("texts_running", "gauge", "Texts that the engine reads or continues.",
      metrics.engine.running);
  row("texts_waiting", "gauge", "Texts that wait for the engine.", metrics.engine.waiting);
  row("cache_tokens", "gauge", "Tokens whose keys and values fit into the cache.",
      metrics.engine.cache_positions);
  row("cache_tokens_held", "gauge", "Of these, tokens of texts under way, as whole pages.",
      metrics.engine.cache_positions_held);
  row("requests_answered_total", "counter", "Requests for texts that got their whole answer.",
      metrics.answered);
  row("requests_queue_full_total", "counter", "Requests that got 429.",
      metrics.engine.groups_refused);
  row("requests_cancelled_total", "counter", "Requests whose client went away.",
      metrics.engine.groups_cancelled);
  row("prompt_tokens_total", "counter", "Tokens of prompts that were answered.",
      metrics.prompt_tokens);
  row("completion_tokens_total", "counter", "New tokens of complete answers.",
      metrics.completion_tokens);
  row("engine_steps_total", "counter", "Programs that the engine ran.", engine.steps);
  row("engine_tokens_read_total", "counter", "Tokens that the engine read.", engine.tokens_read);
  row("engine_tokens_shared_total", "counter",
      "Tokens that another text had read before, whose keys and values were used again.",
      engine.tokens_shared);
  row("engine_tokens_made_total", "counter", "New tokens, of answers under way too.",
      engine.tokens_made);
  row("connections_open", "gauge", "HTTP connections.", metrics.http.connections_open);
  row("connections_total", "counter", "HTTP connections since the start.",
      metrics.http.connections_total);
  row("connections_refused_total", "counter", "HTTP connections beyond the limit.",
      metrics.http.connections_refused);
  row("bytes_received_total", "counter", "On sockets.", metrics.http.bytes_received);
  row("bytes_sent_total", "counter", "On sockets.", metrics.http.bytes_sent);
  page +=
      "# HELP skein_serve_responses_total HTTP answers.\n"
      "# TYPE skein_serve_responses_total counter\n";
  for (const auto& [status, count] : metrics.http.answers_of_status) {
    fmt::format_to(std::back_inserter(page), "skein_serve_responses_total{{code=\"{}\"}} {}\n",
                   status, count);
  }
  return page;
}

}  // namespace skein
