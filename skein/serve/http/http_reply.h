// The answer to one HTTP request, given whole or in pieces, from any thread and at any time.
//
//   reply->send(200, "application/json", text);
//
//   reply->begin_stream(200, "text/event-stream");
//   while (reply->write("data: ...\n\n")) ...           false: the client is gone
//   reply->end();
//
// It is an interface, so that a test of a handler needs no socket.
//
// Threads  all methods from any thread, also after the server has stopped; none waits for the
//          client or the network. Calls for one answer come one after the other
// Memory   a stream holds at most HttpLimits::stream_bytes that the client has not read yet. A
//          client that falls further behind is disconnected, and its request cancelled. What send()
//          gets is held whole
// Errors   Error{kInternal}: a second send() or begin_stream(), a write() or end() without
//          begin_stream(), a status outside 200 to 599, a header that would break the head (a name
//          that is no token, control characters in a value). A client that is gone is no error:
//          the methods return false, and what was given is dropped
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/serve/http/http_request.h"

namespace skein {

// The server adds Date, Connection, and Content-Length or Transfer-Encoding; a handler does not.
// The answer to HEAD is given as that to GET: its body is counted, and not sent. If the last handle
// goes without an answer, the client gets 500; a stream without its end() is cut off, which
// clients see as an error.
class HttpReply {
 public:
  virtual ~HttpReply() = default;

  // The whole answer. 204 and 304 have no body, and no content type.
  virtual bool send(int status, std::string_view content_type, std::string body,
                    const std::vector<HttpHeader>& headers = {}) = 0;

  // An answer in pieces: each write() goes out at once, as a chunk (to HTTP/1.0: plain, until the
  // connection closes). An empty write() is none. end() after the last.
  virtual bool begin_stream(int status, std::string_view content_type,
                            const std::vector<HttpHeader>& headers = {}) = 0;
  virtual bool write(std::string_view piece) = 0;
  virtual bool end() = 0;

  // True once the answer can no longer reach the client: it closed the connection (also its
  // sending half alone), reads too slowly, or the server has stopped.
  virtual bool is_cancelled() const = 0;

  // `callback` is called at most once, on a thread of the server, when the request is cancelled
  // before send() or end(); at once, and here, if it is already. It must not throw or wait. A later
  // callback replaces the earlier one. It is destroyed with the end of the answer, so it may hold
  // this handle.
  virtual void on_cancel(std::function<void()> callback) = 0;
};

}  // namespace skein
