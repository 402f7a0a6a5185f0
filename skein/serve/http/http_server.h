// An HTTP/1.1 server: it reads requests within limits, calls a handler for each, and sends the
// answers, whole or streamed.
//
//   HttpServer server({.port = 8000}, [](HttpRequest request, std::shared_ptr<HttpReply> reply) {
//     if (request.path != "/health") return (void)reply->send(404, "text/plain", "no such page\n");
//     reply->send(200, "text/plain", "ok\n");
//   });
//
// Handler  called on a thread of the server, which serves other connections after it: it must not
//          wait, and answers from another thread what takes time. What it throws is logged, and
//          the client gets 500. Requests of one connection come one at a time, in order; pipelined
//          requests wait
// Answers by itself, with `error_form`, and closes the connection: 400 (a request that is
//          malformed or ambiguous: no or several Host; several Content-Length, or one beside
//          Transfer-Encoding; a target that is no path), 408 (its time is up), 413 (body),
//          417 (an expectation other than 100-continue), 431 (head), 501 (an unknown method, a
//          transfer coding other than chunked), 503 (too many connections or bytes), 505 (version).
//          OPTIONS * gets 204. 404 and 405 are the handler's
// Memory   connections × (2 header_bytes + 2 stream_bytes + about 4 KiB), twice all_bodies_bytes,
//          and what send() was given; requests that the handler has are the handler's. The
//          kernel's buffers of sockets come on top
// Files    a descriptor a connection, 128 for those that get 503, and 6. Without a free one new
//          connections wait, which is logged
// Errors   Error{kUsage}: `address` is not a numeric address or "localhost", or is not of this
//          machine. Error{kBusy}: the port is in use. Error{kIo}: no socket or thread to be had, or
//          the port is not for this user
// Source   RFC 9110, RFC 9112
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "skein/serve/http/http_reply.h"
#include "skein/serve/http/http_request.h"

namespace skein {

using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;

struct HttpErrorBody {
  std::string content_type, body;
};
// The body of an answer that the server gives by itself: `message` is a sentence for the client.
using HttpErrorForm = std::function<HttpErrorBody(int status, std::string_view message)>;

struct HttpLimits {
  int64_t header_bytes = 16 << 10;       // request line and headers; also a line of a chunk's size
  int64_t body_bytes = 8 << 20;          // of one request
  int64_t all_bodies_bytes = 512 << 20;  // of all requests that are being received; more: 503
  int64_t stream_bytes = 1 << 20;        // of one answer, not read yet; more: disconnected
  int connections = 1024;                // more get 503 at once, and the connection is closed
  std::chrono::milliseconds header_timeout{10'000};  // from accept or its first byte
  std::chrono::milliseconds body_timeout{30'000};    // from the head to the last byte
  std::chrono::milliseconds idle_timeout{60'000};    // between requests
  std::chrono::milliseconds write_timeout{30'000};   // an answer without progress
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // numeric, or "localhost"; "::" listens to IPv4, too
  int port = 0;                       // 0: any that is free
  int num_threads = 1;
  HttpLimits limits;
  HttpErrorForm error_form;  // none: text/plain, the message and a line feed
};

struct HttpCounts {
  int64_t connections_open = 0, connections_total = 0;
  int64_t connections_refused = 0;             // with 503 or without an answer: too many
  int64_t requests_cancelled = 0;              // before their answer was complete
  int64_t bytes_received = 0, bytes_sent = 0;  // on sockets
  std::map<int, int64_t> answers_of_status;    // begun; those of the server itself included
};

class HttpServer {
 public:
  // Listens when it returns; connections are accepted at once.
  HttpServer(const HttpServerOptions& options, HttpHandler handler);
  ~HttpServer();  // stop(0)
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  std::string url() const;  // http://127.0.0.1:8000, http://[::1]:8000
  HttpCounts counts() const;

  // Accepts no more, and closes connections without a request. Requests that the handler has may
  // be answered within `grace`; then they are cancelled. Returns when all connections are closed
  // and no thread of the server runs; never call it from the handler or a callback. The second call
  // does nothing. Returns how many connections were cut off.
  int64_t stop(std::chrono::milliseconds grace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
