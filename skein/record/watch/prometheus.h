// A server of metrics for Prometheus: the text exposition format 0.0.4 over HTTP at GET /metrics.
//
// Source   https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>

namespace skein {

// "host:port", such as "127.0.0.1:9100" or "[::1]:9100"; port 0 picks a free one.
struct ListenAddress {
  std::string text;
  struct sockaddr_storage bytes {};
  socklen_t size = 0;

  // Asks the resolver for a name, which may take it half a minute. Error{kUsage}: there is none.
  static ListenAddress find(const std::string& text);
};

// For trusted networks only: it answers any client, one at a time, with a deadline of one second
// for its request and one for the answer; of more than kMostWaiting that wait the last are turned
// away.
// Errors   Error{kUsage} naming an address that cannot be bound.
// Threads  one accepts, and never waits for a client; one answers, and calls `text` for each. It
//          must not throw. The destructor waits for the first alone, so `text` may be under
//          way when it has returned
class PrometheusServer {
 public:
  static constexpr size_t kMostWaiting = 64;

  PrometheusServer(const ListenAddress& address, std::function<std::string()> text);
  ~PrometheusServer();

  int port() const;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace skein
