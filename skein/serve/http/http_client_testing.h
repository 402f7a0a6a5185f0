// A client for tests of the HTTP server: it sends bytes as they are, also those that no HTTP client
// would send, and reads answers.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/base/threads/mutex.h"
#include "skein/serve/http/http_server.h"

namespace skein {

struct HttpTestAnswer {
  int status = 0;    // 0: the connection closed before a whole head
  std::string head;  // with the status line
  std::string body;  // chunks put together
  bool is_whole = false;

  bool has(std::string_view line) const {
    return head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
  }
};

class HttpTestClient {
 public:
  // `receive_bytes`: of the kernel's buffer, if not 0: a small one fills soon.
  explicit HttpTestClient(int port, int receive_bytes = 0);
  HttpTestClient(HttpTestClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), received_(std::move(other.received_)) {}
  ~HttpTestClient();

  // False if the server has closed the connection.
  bool send(std::string_view bytes);
  void shut_down_sending();
  void close();
  void reset();  // the server gets RST

  // Waits at most 10 s for each.
  HttpTestAnswer read_answer(bool has_body = true);
  HttpTestAnswer ask(std::string_view request) {
    send(request);
    return read_answer();
  }
  bool read_until(std::string_view text);  // what came before is dropped
  std::string read_to_the_end();
  // Whether the server closes the connection and nothing more comes; by RST, too.
  bool is_closed_by_server() { return read_to_the_end().empty(); }

 private:
  bool receive();

  int socket_ = -1;
  std::string received_;
};

// A server whose handler answers /echo with the request, /stream with "one", "two" and "three", and
// keeps the replies of all other paths for the test.
class HttpTestServer {
 public:
  explicit HttpTestServer(HttpLimits limits = {}, int num_threads = 1, HttpErrorForm form = {});

  HttpServer& operator*() { return *server_; }
  HttpServer* operator->() { return server_.get(); }
  int port() const { return server_->port(); }
  HttpTestClient connect(int receive_bytes = 0) { return HttpTestClient(port(), receive_bytes); }

  // The next reply that was kept; waits for it at most 10 s.
  std::shared_ptr<HttpReply> next_reply();

 private:
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply);

  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<std::shared_ptr<HttpReply>> kept_;
  std::unique_ptr<HttpServer> server_;
};

// Whether `condition` becomes true within 10 s.
bool comes_true(const std::function<bool()>& condition);

}  // namespace skein
