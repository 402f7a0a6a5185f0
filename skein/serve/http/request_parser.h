// The bytes of a connection as one request: what HttpServer accepts, without a socket. Boost.Beast
// parses; what Beast leaves open is decided here, so that no proxy in front can see other requests
// than this server does.
//
//   refused here, not by Beast   Transfer-Encoding other than "chunked", or in HTTP/1.0; a second
//                                Content-Length, even an equal one; no Host, or several; headers
//                                folded over lines; heads longer in sum than the limit
//   accepted                     some empty lines before the request line; extensions of chunks and
//                                trailers, which are dropped
//
// Memory   the head, and what came of the body: the string may have twice that reserved
// Source   RFC 9112, 2.2, 3.2, 5.2, 6.1, 6.3, 7.1
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "skein/serve/http/http_request.h"

namespace skein {

class RequestParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  RequestParser(int64_t header_bytes, int64_t body_bytes);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  // Takes bytes from the front of `bytes`, and returns how many; at most to the end of the head,
  // then to the end of the request. 0 if it needs more, or has failed: the rest comes again, with
  // what follows it. A caller that has no room for more than `header_bytes` behind which nothing
  // is taken calls refuse_long_line().
  size_t parse(std::string_view bytes);
  void refuse_long_line();

  State state() const;
  bool has_begun() const;  // a byte of the request was taken
  // Of a request that failed: the status of the answer, and a sentence for the client.
  int problem_status() const;
  const std::string& problem() const;

  // Once the head is there.
  bool expects_continue() const;  // the client waits for "100 Continue" before it sends the body
  bool keeps_alive() const;       // the client wants to send more requests on this connection
  bool is_http10() const;
  bool is_head() const;
  int64_t body_bytes() const;  // that are here
  // The method and the path of a request that failed in its head may be empty.
  const HttpRequest& request() const;
  HttpRequest take_request();

 private:
  class Beast;
  std::unique_ptr<Beast> beast_;
};

}  // namespace skein
