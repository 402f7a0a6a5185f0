#include "skein/serve/http/pending_reply.h"

#include <fmt/format.h>

#include <exception>
#include <iterator>
#include <optional>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/serve/http/response_head.h"

namespace skein {
namespace {

void call(const std::function<void()>& callback) {
  if (!callback) return;
  try {
    callback();
  } catch (const std::exception& error) {
    log::error("a callback for a cancelled request failed: {}", error.what());
  }
}

}  // namespace

PendingReply::PendingReply(PendingReplyOptions options)
    : options_(std::move(options)), keeps_alive_(options_.keeps_alive) {}

// Whether the caller is to call `wake` once it has released the lock.
bool PendingReply::takes_wake() { return std::exchange(is_idle_, false); }

void PendingReply::begin_head(int status, std::string_view content_type,
                              const std::vector<HttpHeader>& headers,
                              std::optional<int64_t> body_bytes) {
  if (phase_ != Phase::kWaiting) {
    fail(ErrorCode::kInternal, "a request gets a second answer, with status {}", status);
  }
  // Without a length or chunks only the end of the connection ends a body.
  is_chunked_ = !body_bytes && !options_.is_http10;
  if (!body_bytes && options_.is_http10) keeps_alive_ = false;
  has_body_ = !options_.is_head && !has_no_body(status);
  status_ = status;
  queued_ = response_head(
      status, content_type, headers,
      {.body_bytes = body_bytes, .is_http10 = options_.is_http10, .keeps_alive = keeps_alive_});
}

bool PendingReply::send(int status, std::string_view content_type, std::string_view body,
                        const std::vector<HttpHeader>& headers) {
  check_response_head(status, content_type, headers);
  std::function<void()> dropped;  // destroyed without the lock: it may hold the handle
  bool wakes = false;
  {
    Lock lock(mutex_);
    if (phase_ == Phase::kCancelled) return false;
    begin_head(status, content_type, headers, std::ssize(body));
    if (has_body_) queued_ += body;
    phase_ = Phase::kComplete;
    dropped = std::move(on_cancel_);
    on_cancel_ = nullptr;
    wakes = takes_wake();
  }
  if (wakes) options_.wake();
  return true;
}

bool PendingReply::begin_stream(int status, std::string_view content_type,
                                const std::vector<HttpHeader>& headers) {
  check_response_head(status, content_type, headers);
  bool wakes = false;
  {
    Lock lock(mutex_);
    if (phase_ == Phase::kCancelled) return false;
    begin_head(status, content_type, headers, std::nullopt);
    phase_ = Phase::kStreaming;
    wakes = takes_wake();
  }
  if (wakes) options_.wake();
  return true;
}

void PendingReply::drop_stream() {
  phase_ = Phase::kCancelled;
  is_cancelled_ = true;
  is_cut_ = true;
  queued_ = {};
}

bool PendingReply::write(std::string_view piece) {
  bool is_too_slow = false, wakes = false;
  {
    Lock lock(mutex_);
    if (phase_ == Phase::kCancelled) return false;
    if (phase_ != Phase::kStreaming) {
      fail(ErrorCode::kInternal, "a piece of an answer comes {}",
           phase_ == Phase::kWaiting ? "before begin_stream()" : "after its end");
    }
    if (piece.empty() || !has_body_) return true;
    // A piece of any length fits an empty queue: its client is not slow.
    const int64_t num_waiting = std::ssize(queued_) + in_flight_bytes_;
    is_too_slow = num_waiting > 0 && num_waiting + std::ssize(piece) > options_.stream_bytes;
    if (is_too_slow) {
      drop_stream();
      is_idle_ = false;
    } else {
      if (is_chunked_) fmt::format_to(std::back_inserter(queued_), "{:x}\r\n", piece.size());
      queued_ += piece;
      if (is_chunked_) queued_ += "\r\n";
      wakes = takes_wake();
    }
  }
  if (wakes || is_too_slow) options_.wake();
  return !is_too_slow;
}

bool PendingReply::end() {
  std::function<void()> dropped;
  bool wakes = false;
  {
    Lock lock(mutex_);
    if (phase_ == Phase::kCancelled) return false;
    if (phase_ != Phase::kStreaming) {
      fail(ErrorCode::kInternal, "an answer ends {}",
           phase_ == Phase::kWaiting ? "before begin_stream()" : "twice");
    }
    if (is_chunked_ && has_body_) queued_ += "0\r\n\r\n";
    phase_ = Phase::kComplete;
    dropped = std::move(on_cancel_);
    on_cancel_ = nullptr;
    wakes = takes_wake();
  }
  if (wakes) options_.wake();
  return true;
}

void PendingReply::on_cancel(std::function<void()> callback) {
  std::function<void()> former;
  {
    Lock lock(mutex_);
    former = std::move(on_cancel_);
    on_cancel_ = nullptr;
    if (phase_ == Phase::kComplete) return;
    if (phase_ != Phase::kCancelled) {
      on_cancel_ = std::move(callback);
      return;
    }
  }
  call(callback);
}

void PendingReply::abandon() {
  Phase phase;
  {
    Lock lock(mutex_);
    phase = phase_;
    if (phase == Phase::kStreaming) drop_stream();
  }
  if (phase == Phase::kStreaming) {
    log::error("a stream was given up without its end: its connection is cut");
    options_.wake();
  } else if (phase == Phase::kWaiting) {
    log::error("a request was given up without an answer: it gets 500");
    const HttpErrorBody body =
        error_body(options_.error_form, 500, "the server has no answer to this request");
    send(500, body.content_type, body.body, {});
  }
}

PendingReply::Output PendingReply::take() {
  Lock lock(mutex_);
  Output output{.bytes = std::move(queued_), .is_last = phase_ == Phase::kComplete};
  queued_ = {};
  in_flight_bytes_ += std::ssize(output.bytes);
  is_idle_ = output.bytes.empty();
  return output;
}

void PendingReply::note_sent(int64_t num_bytes) {
  Lock lock(mutex_);
  in_flight_bytes_ -= num_bytes;
}

bool PendingReply::cancel() {
  std::function<void()> callback;
  {
    Lock lock(mutex_);
    // The stream of a slow reader is cancelled already; its callback was left for this thread.
    if (phase_ == Phase::kComplete) return false;
    if (phase_ == Phase::kCancelled && !is_cut_) return false;
    phase_ = Phase::kCancelled;
    is_cancelled_ = true;
    is_cut_ = false;
    queued_ = {};
    callback = std::move(on_cancel_);
    on_cancel_ = nullptr;
  }
  call(callback);
  return true;
}

void PendingReply::close_after() {
  Lock lock(mutex_);
  if (phase_ == Phase::kWaiting) keeps_alive_ = false;
}

bool PendingReply::is_cut() const {
  Lock lock(mutex_);
  return is_cut_;
}

bool PendingReply::is_complete() const {
  Lock lock(mutex_);
  return phase_ == Phase::kComplete;
}

bool PendingReply::keeps_alive() const {
  Lock lock(mutex_);
  return keeps_alive_;
}

int PendingReply::status() const {
  Lock lock(mutex_);
  return status_;
}

class ReplyHandle final : public HttpReply {
 public:
  explicit ReplyHandle(std::shared_ptr<PendingReply> pending) : pending_(std::move(pending)) {}
  ~ReplyHandle() override {
    try {
      pending_->abandon();
    } catch (const std::exception& error) {
      log::error("a request was given up: {}", error.what());
    }
  }

  bool send(int status, std::string_view content_type, std::string body,
            const std::vector<HttpHeader>& headers) override {
    return pending_->send(status, content_type, body, headers);
  }
  bool begin_stream(int status, std::string_view content_type,
                    const std::vector<HttpHeader>& headers) override {
    return pending_->begin_stream(status, content_type, headers);
  }
  bool write(std::string_view piece) override { return pending_->write(piece); }
  bool end() override { return pending_->end(); }
  bool is_cancelled() const override { return pending_->is_cancelled_; }
  void on_cancel(std::function<void()> callback) override {
    pending_->on_cancel(std::move(callback));
  }

 private:
  std::shared_ptr<PendingReply> pending_;
};

std::shared_ptr<HttpReply> reply_handle(std::shared_ptr<PendingReply> pending) {
  return std::make_shared<ReplyHandle>(std::move(pending));
}

HttpErrorBody error_body(const HttpErrorForm& form, int status, std::string_view message) {
  if (form) return form(status, message);
  return {.content_type = "text/plain", .body = fmt::format("{}\n", message)};
}

}  // namespace skein
