// A server of metrics for Prometheus: the text exposition format 0.0.4 over HTTP at GET /metrics.
//
// Source   https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace skein {

// Serves from its own thread. For trusted networks only: it answers any client, one at a time, with
// a deadline of one second each.
// Errors   Error{kUsage} naming an address that cannot be bound.
// Threads  `text` is called in the server's thread, once a request; it must not throw
class PrometheusServer {
 public:
  // `address`: "host:port", such as "127.0.0.1:9100" or "[::1]:9100"; port 0 picks a free one.
  PrometheusServer(const std::string& address, std::function<std::string()> text);
  ~PrometheusServer();

  int port() const;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace skein
