// The answer to one request between the handler, which gives it from any thread, and the
// connection, which sends it: a queue of bytes that never makes the handler wait.
//
// Threads  the methods of HttpReply (reply_handle) from any thread; those of PendingReply from the
//          connection's. `wake` is called from either, without a lock
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/threads/mutex.h"
#include "skein/serve/http/http_reply.h"
#include "skein/serve/http/http_server.h"

namespace skein {

struct PendingReplyOptions {
  bool is_head = false;      // the request's method
  bool is_http10 = false;    // the request's version
  bool keeps_alive = false;  // the connection is to be used again
  int64_t stream_bytes = 1 << 20;
  HttpErrorForm error_form;    // of the answer of a handle that goes without one
  std::function<void()> wake;  // there is something to take()
};

class PendingReply {
 public:
  explicit PendingReply(PendingReplyOptions options);
  PendingReply(const PendingReply&) = delete;
  PendingReply& operator=(const PendingReply&) = delete;

  struct Output {
    std::string bytes;
    bool is_last = false;  // nothing follows these
  };
  // What has come since the last call. `wake` is called next when more has come, if this was empty.
  Output take();
  void note_sent(int64_t num_bytes);  // of those taken

  // The client is gone. Calls the callback, unless the answer is complete; true if it was not.
  bool cancel();
  // A head that has not been made yet says "Connection: close".
  void close_after();

  bool is_cut() const;       // the connection is to be closed: a slow reader, a stream without end
  bool is_complete() const;  // send() or end() was called: cancel() changes nothing for the handler
  bool keeps_alive() const;  // as the head says; only once the answer is complete
  int status() const;        // 0 before the head

 private:
  friend class ReplyHandle;
  enum class Phase { kWaiting, kStreaming, kComplete, kCancelled };

  bool send(int status, std::string_view content_type, std::string_view body,
            const std::vector<HttpHeader>& headers);
  bool begin_stream(int status, std::string_view content_type,
                    const std::vector<HttpHeader>& headers);
  bool write(std::string_view piece);
  bool end();
  void on_cancel(std::function<void()> callback);
  void abandon();  // the last handle is gone

  void begin_head(int status, std::string_view content_type, const std::vector<HttpHeader>& headers,
                  std::optional<int64_t> body_bytes) SKEIN_REQUIRES(mutex_);
  void drop_stream() SKEIN_REQUIRES(mutex_);
  bool takes_wake() SKEIN_REQUIRES(mutex_);

  const PendingReplyOptions options_;
  std::atomic<bool> is_cancelled_ = false;
  mutable Mutex mutex_;
  Phase phase_ SKEIN_GUARDED_BY(mutex_) = Phase::kWaiting;
  std::string queued_ SKEIN_GUARDED_BY(mutex_);
  int64_t in_flight_bytes_ SKEIN_GUARDED_BY(mutex_) = 0;  // taken, and not sent yet
  bool is_idle_ SKEIN_GUARDED_BY(mutex_) = true;          // the connection waits for `wake`
  bool is_cut_ SKEIN_GUARDED_BY(mutex_) = false;
  bool keeps_alive_ SKEIN_GUARDED_BY(mutex_);
  bool has_body_ SKEIN_GUARDED_BY(mutex_) = true, is_chunked_ SKEIN_GUARDED_BY(mutex_) = false;
  int status_ SKEIN_GUARDED_BY(mutex_) = 0;
  std::function<void()> on_cancel_ SKEIN_GUARDED_BY(mutex_);
};

// What the handler gets.
std::shared_ptr<HttpReply> reply_handle(std::shared_ptr<PendingReply> pending);

// The body of an answer of the server itself: `form`'s, or text/plain.
HttpErrorBody error_body(const HttpErrorForm& form, int status, std::string_view message);

}  // namespace skein
