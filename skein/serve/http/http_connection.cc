#include "skein/serve/http/http_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "skein/base/text/log.h"

namespace skein {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kDrainTime{2'000};
constexpr size_t kSlice = 64 << 10;  // of an answer, in one system call
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<HttpServerCore> core, HttpSocket socket,
                               std::string peer)
    : core_(std::move(core)),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      parser_(core_->options.limits.header_bytes, core_->options.limits.body_bytes),
      timer_(socket_.get_executor()) {}

template <typename Step>
void HttpConnection::guard(Step step) {
  if (phase_ == Phase::kClosed) return;
  try {
    step();
  } catch (const std::exception& error) {
    log::error("the connection of {} is cut: {}", peer_, error.what());
    close();
  }
}

template <typename Step>
void HttpConnection::post(Step step) {
  asio::post(socket_.get_executor(),
             [self = shared_from_this(), step] { self->guard([&] { step(*self); }); });
}

void HttpConnection::start() {
  post([](HttpConnection& self) {
    self.buffer_.resize(static_cast<size_t>(self.core_->options.limits.header_bytes));
    self.await(self.core_->options.limits.header_timeout);
    self.read();
  });
}

void HttpConnection::refuse() {
  post([](HttpConnection& self) {
    self.answer_by_itself(503, "the server has as many connections as it may: try again later");
  });
}

void HttpConnection::stop() {
  post([](HttpConnection& self) {
    self.is_stopping_ = true;
    if (self.phase_ != Phase::kAnswering) return self.close();
    self.reply_->close_after();
  });
}

void HttpConnection::cut() {
  post([](HttpConnection& self) { self.close(); });
}

// ---- reading ----

void HttpConnection::read() {
  if (is_reading_ || has_eof_) return;
  if (phase_ == Phase::kDraining) read_begin_ = read_end_ = 0;
  if (read_begin_ > 0) {
    buffer_.replace(0, read_end_ - read_begin_, buffer_, read_begin_, read_end_ - read_begin_);
    buffer_.resize(static_cast<size_t>(core_->options.limits.header_bytes));
    read_end_ -= read_begin_;
    read_begin_ = 0;
  }
  if (read_end_ == buffer_.size()) return;  // full of requests that wait
  is_reading_ = true;
  socket_.async_read_some(asio::buffer(buffer_.data() + read_end_, buffer_.size() - read_end_),
                          [self = shared_from_this()](const error_code& error, size_t num_bytes) {
                            self->guard([&] { self->on_read(error, num_bytes); });
                          });
}

void HttpConnection::on_read(const error_code& error, size_t num_bytes) {
  is_reading_ = false;
  core_->counters.bytes_received += static_cast<int64_t>(num_bytes);
  read_end_ += num_bytes;
  if (!error) {
    if (phase_ == Phase::kReading) return advance();
    return read();
  }
  has_eof_ = true;
  // A client that has shut down its half may still read an answer that is complete.
  const bool is_answered = phase_ == Phase::kAnswering && reply_->is_complete();
  if (error != asio::error::eof || !is_answered) close();
}

void HttpConnection::advance() {
  const HttpLimits& limits = core_->options.limits;
  while (true) {
    const bool was_idle = !parser_.has_begun();
    const RequestParser::State before = parser_.state();
    const std::string_view bytes(buffer_.data() + read_begin_, read_end_ - read_begin_);
    const size_t num_taken = parser_.parse(bytes);
    read_begin_ += num_taken;
    if (was_idle && parser_.has_begun()) await(limits.header_timeout);
    if (num_taken == 0 && read_end_ - read_begin_ == buffer_.size()) parser_.refuse_long_line();
    if (!reserve_body()) return;
    switch (parser_.state()) {
      case RequestParser::State::kFailed:
        return answer_by_itself(parser_.problem_status(), parser_.problem());
      case RequestParser::State::kDone:
        return dispatch();
      case RequestParser::State::kBody:
        if (before == RequestParser::State::kHead && !on_head()) return;
        break;
      case RequestParser::State::kHead:
        break;
    }
    const bool is_stuck = num_taken == 0 || read_begin_ == read_end_;
    if (is_stuck) return has_eof_ ? close() : read();
  }
}

// The head is there, and a body is to follow.
bool HttpConnection::on_head() {
  await(core_->options.limits.body_timeout);
  if (!parser_.expects_continue() || read_begin_ < read_end_) return true;
  // The kernel has room for 25 bytes, unless the client has not read the answers before.
  error_code error;
  socket_.non_blocking(true, error);
  const size_t num_sent = socket_.send(asio::buffer(kContinue), 0, error);
  core_->counters.bytes_sent += static_cast<int64_t>(num_sent);
  if (num_sent == kContinue.size()) return true;
  close();
  return false;
}

// Counts the body's bytes among those of all connections; false if they were too many.
bool HttpConnection::reserve_body() {
  const int64_t more = parser_.body_bytes() - reserved_body_bytes_;
  if (more <= 0) return true;
  reserved_body_bytes_ += more;
  if ((core_->body_bytes += more) <= core_->options.limits.all_bodies_bytes) return true;
  answer_by_itself(503, "the server receives as many bytes of requests as it may: try again later");
  return false;
}

void HttpConnection::dispatch() {
  core_->body_bytes -= std::exchange(reserved_body_bytes_, 0);
  begin_answer(parser_.keeps_alive() && !is_stopping_);
  HttpRequest request = parser_.take_request();
  request.peer = peer_;
  const std::shared_ptr<HttpReply> reply = reply_handle(reply_);
  if (request.path == "*") {
    reply->send(204, "", "", {{"Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"}});
  } else {
    try {
      core_->handler(std::move(request), reply);
    } catch (const std::exception& error) {
      log::error("a request of {} failed: {}", peer_, error.what());
      // Of a handler that had begun its answer the handle cuts the stream.
      if (reply_->status() == 0) {
        const HttpErrorBody body =
            error_body(core_->options.error_form, 500, "the server failed at this request");
        reply->send(500, body.content_type, body.body);
      }
    }
  }
  if (has_eof_ && !reply_->is_complete()) return close();
  read();
}

// ---- answering ----

void HttpConnection::begin_answer(bool keeps_alive) {
  phase_ = Phase::kAnswering;
  await_nothing();
  is_last_ = false;
  const std::weak_ptr<HttpConnection> weak = weak_from_this();
  const auto wake = [weak] {
    const std::shared_ptr<HttpConnection> self = weak.lock();
    if (!self) return;
    // Held weakly: what is posted after the last run of the loop must not keep it.
    asio::post(self->socket_.get_executor(), [weak] {
      if (const auto again = weak.lock()) again->guard([&] { again->flush(); });
    });
  };
  reply_ = std::make_shared<PendingReply>(
      PendingReplyOptions{.is_head = parser_.is_head(),
                          .is_http10 = parser_.is_http10(),
                          .keeps_alive = keeps_alive,
                          .stream_bytes = core_->options.limits.stream_bytes,
                          .error_form = core_->options.error_form,
                          .wake = wake});
}

void HttpConnection::answer_by_itself(int status, std::string_view message) {
  begin_answer(false);
  parser_.take_request();  // what came of the body is given back now, not after the answer
  core_->body_bytes -= std::exchange(reserved_body_bytes_, 0);
  const HttpErrorBody body = error_body(core_->options.error_form, status, message);
  reply_handle(reply_)->send(status, body.content_type, body.body);
}

void HttpConnection::flush() {
  if (phase_ != Phase::kAnswering) return;
  if (reply_->is_cut()) return close();
  if (is_sending_) return;  // on_sent() takes what has come
  PendingReply::Output output = reply_->take();
  is_last_ = output.is_last;
  out_ = std::move(output.bytes);
  out_begin_ = 0;
  send();
}

void HttpConnection::send() {
  if (out_begin_ == out_.size()) {
    if (is_last_) finish_answer();
    return;
  }
  is_sending_ = true;
  await(core_->options.limits.write_timeout);
  socket_.async_write_some(
      asio::buffer(out_.data() + out_begin_, std::min(kSlice, out_.size() - out_begin_)),
      [self = shared_from_this()](const error_code& error, size_t num_bytes) {
        self->guard([&] { self->on_sent(error, num_bytes); });
      });
}

void HttpConnection::on_sent(const error_code& error, size_t num_bytes) {
  is_sending_ = false;
  core_->counters.bytes_sent += static_cast<int64_t>(num_bytes);
  if (error) return close();
  reply_->note_sent(static_cast<int64_t>(num_bytes));
  out_begin_ += num_bytes;
  if (out_begin_ < out_.size()) return send();
  await_nothing();
  flush();
}

void HttpConnection::finish_answer() {
  ++core_->counters.answers[static_cast<size_t>(reply_->status())];
  const bool keeps_alive = reply_->keeps_alive() && !is_stopping_;
  reply_ = nullptr;
  out_ = {};
  out_begin_ = 0;
  if (!keeps_alive) return drain();
  phase_ = Phase::kReading;
  const HttpLimits& limits = core_->options.limits;
  parser_ = RequestParser(limits.header_bytes, limits.body_bytes);
  await(limits.idle_timeout);
  advance();
}

// ---- the end ----

void HttpConnection::drain() {
  error_code ignored;
  socket_.shutdown(HttpSocket::shutdown_send, ignored);
  if (has_eof_ || is_stopping_) return close();
  phase_ = Phase::kDraining;
  if (buffer_.empty()) buffer_.resize(static_cast<size_t>(core_->options.limits.header_bytes));
  await(kDrainTime);
  read();
}

void HttpConnection::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  error_code ignored;
  socket_.close(ignored);
  await_nothing();
  timer_.cancel();
  core_->body_bytes -= std::exchange(reserved_body_bytes_, 0);
  if (reply_) {
    if (reply_->cancel()) {
      ++core_->counters.requests_cancelled;
      if (reply_->status() != 0) ++core_->counters.answers[static_cast<size_t>(reply_->status())];
    }
    reply_ = nullptr;
  }
  core_->connections.remove(*this);
}

// The timer is set only if it would ring too late: most limits pass unused, a few each request.
void HttpConnection::await(Duration time) {
  deadline_ = std::chrono::steady_clock::now() + time;
  if (armed_ && *armed_ <= *deadline_) return;
  arm_timer();
}

void HttpConnection::await_nothing() { deadline_ = std::nullopt; }

void HttpConnection::arm_timer() {
  armed_ = deadline_;
  timer_.expires_at(*deadline_);
  timer_.async_wait([weak = weak_from_this()](const error_code& error) {
    const std::shared_ptr<HttpConnection> self = weak.lock();
    if (!self || error) return;
    self->guard([&] { self->on_deadline(); });
  });
}

void HttpConnection::on_deadline() {
  armed_ = std::nullopt;
  if (!deadline_) return;
  if (std::chrono::steady_clock::now() < *deadline_) return arm_timer();
  const bool is_request_late = phase_ == Phase::kReading && parser_.has_begun();
  if (!is_request_late) return close();
  answer_by_itself(408, parser_.state() == RequestParser::State::kHead
                            ? "the request line and the headers did not come in time"
                            : "the body did not come in time");
}

}  // namespace skein
