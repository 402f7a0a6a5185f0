// What the connections of an HTTP server share: the event loop, the limits, the handler, counters.
//
// Threads  io.run() on each of the server's; the counters and the methods from any of them
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "skein/serve/http/http_connections.h"
#include "skein/serve/http/http_server.h"

namespace skein {

using HttpStrand = boost::asio::strand<boost::asio::io_context::executor_type>;
using HttpSocket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, HttpStrand>;
using HttpTimer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, HttpStrand>;

struct HttpCounters {
  std::atomic<int64_t> connections_total = 0, connections_refused = 0, requests_cancelled = 0;
  std::atomic<int64_t> bytes_received = 0, bytes_sent = 0;
  std::array<std::atomic<int64_t>, 600> answers{};  // of each status
};

struct HttpServerCore {
  HttpServerCore(const HttpServerOptions& options, HttpHandler handler)
      : io(options.num_threads), options(options), handler(std::move(handler)) {}

  boost::asio::io_context io;
  const HttpServerOptions options;
  const HttpHandler handler;
  HttpCounters counters;
  HttpConnections connections;
  std::atomic<int64_t> body_bytes = 0;  // of all requests that are being received
};

}  // namespace skein
