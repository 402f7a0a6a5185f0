// One connection of a client: reads a request, has it handled, sends the answer, and again.
//
//   reading → answering → reading …     answering → draining → closed
//
//   reading    a request comes in, or the connection waits for one; each has its time limit
//   answering  the handler has the request. The socket is still read, up to a full buffer, so that
//              a client that goes away is noticed; requests that it sends meanwhile wait
//   draining   all is sent and this side shut down. What the client sends is dropped for
//              2 seconds: closed at once, the kernel would discard the answer on its way
//
// Threads  its handlers run on the strand of its socket; start, refuse, stop and cut from anywhere
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "skein/serve/http/pending_reply.h"
#include "skein/serve/http/request_parser.h"
#include "skein/serve/http/server_core.h"

namespace skein {

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::shared_ptr<HttpServerCore> core, HttpSocket socket, std::string peer);

  void start();
  void refuse();  // 503: there are too many connections
  void stop();    // after the answer under way, if there is one
  void cut();     // now

 private:
  enum class Phase { kReading, kAnswering, kDraining, kClosed };
  using Duration = std::chrono::milliseconds;

  // Runs a step on the strand; a connection whose step throws is closed.
  template <typename Step>
  void post(Step step);
  template <typename Step>
  void guard(Step step);

  void read();
  void on_read(const boost::system::error_code& error, size_t num_bytes);
  void advance();
  bool on_head();
  bool reserve_body();
  void dispatch();
  void begin_answer(bool keeps_alive);
  void answer_by_itself(int status, std::string_view message);

  void flush();
  void send();
  void on_sent(const boost::system::error_code& error, size_t num_bytes);
  void finish_answer();

  void await(Duration time);  // a time limit from now on, in place of the one before
  void await_nothing();
  void arm_timer();
  void on_deadline();
  void drain();
  void close();

  std::shared_ptr<HttpServerCore> core_;
  HttpSocket socket_;
  const std::string peer_;
  Phase phase_ = Phase::kReading;
  bool is_stopping_ = false;

  // Bytes [read_begin_, read_end_) of the buffer are received and not parsed.
  std::string buffer_;
  size_t read_begin_ = 0, read_end_ = 0;
  bool is_reading_ = false, has_eof_ = false;
  RequestParser parser_;
  int64_t reserved_body_bytes_ = 0;

  std::shared_ptr<PendingReply> reply_;
  std::string out_;  // taken from the reply; of it `out_begin_` bytes are sent
  size_t out_begin_ = 0;
  bool is_sending_ = false, is_last_ = false;

  HttpTimer timer_;
  using Time = std::chrono::steady_clock::time_point;
  std::optional<Time> deadline_, armed_;  // when time is up; when the timer rings
};

}  // namespace skein
