// The client and the server of http_client_testing.h.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "skein/base/error.h"
#include "skein/serve/http/http_client_testing.h"

namespace skein {

HttpTestClient::HttpTestClient(int port, int receive_bytes) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_bytes > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
  }
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    close();
    fail(ErrorCode::kIo, "cannot connect to port {}: {}", port, errno_text(error));
  }
}

HttpTestClient::~HttpTestClient() { close(); }

bool HttpTestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t num = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (num <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(num));
  }
  return true;
}

void HttpTestClient::shut_down_sending() { ::shutdown(socket_, SHUT_WR); }

void HttpTestClient::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void HttpTestClient::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close();
}

bool HttpTestClient::receive() {
  char bytes[64 << 10];
  const ssize_t num = ::recv(socket_, bytes, sizeof(bytes), 0);
  if (num < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    ADD_FAILURE() << "the server sent nothing for 10 s";
  }
  if (num <= 0) return false;
  received_.append(bytes, static_cast<size_t>(num));
  return true;
}

bool HttpTestClient::read_until(std::string_view text) {
  size_t begin;
  while ((begin = received_.find(text)) == std::string::npos) {
    if (!receive()) return false;
  }
  received_.erase(0, begin + text.size());
  return true;
}

std::string HttpTestClient::read_to_the_end() {
  while (receive()) {
  }
  return std::exchange(received_, {});
}

HttpTestAnswer HttpTestClient::read_answer(bool has_body) {
  HttpTestAnswer answer;
  const auto take = [&](size_t num_bytes) {
    while (received_.size() < num_bytes && receive()) {
    }
    const bool is_whole = received_.size() >= num_bytes;
    std::string bytes = received_.substr(0, num_bytes);
    received_.erase(0, bytes.size());
    return std::pair(std::move(bytes), is_whole);
  };
  const auto take_line = [&] {
    size_t end;
    while ((end = received_.find("\r\n")) == std::string::npos) {
      if (!receive()) return std::string();
    }
    return take(end + 2).first;
  };
  size_t end;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!receive()) return answer;
  }
  answer.head = take(end + 4).first;
  if (!answer.head.starts_with("HTTP/1.1 ")) return answer;
  answer.status = std::stoi(answer.head.substr(9, 3));
  const size_t length = answer.head.find("\r\nContent-Length: ");
  if (!has_body || answer.status / 100 == 1 || answer.status == 204) {
    answer.is_whole = true;
  } else if (length != std::string::npos) {
    const auto [body, is_whole] = take(std::stoul(answer.head.substr(length + 18)));
    answer.body = body;
    answer.is_whole = is_whole;
  } else if (answer.has("Transfer-Encoding: chunked")) {
    while (true) {
      const std::string line = take_line();
      if (line.empty()) break;
      const size_t size = std::stoul(line, nullptr, 16);
      answer.body += take(size).first;
      if (take_line() != "\r\n") break;
      if (size == 0) {
        answer.is_whole = true;
        break;
      }
    }
  } else {
    answer.body = read_to_the_end();
    answer.is_whole = true;
  }
  return answer;
}

HttpTestServer::HttpTestServer(HttpLimits limits, int num_threads, HttpErrorForm form) {
  const HttpServerOptions options{.num_threads = num_threads, .limits = limits, .error_form = form};
  server_ = std::make_unique<HttpServer>(
      options, [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
        handle(std::move(request), std::move(reply));
      });
}

void HttpTestServer::handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  if (request.path == "/echo") {
    reply->send(200, "text/plain",
                fmt::format("{} {} {}", request.method, request.query, request.body));
  } else if (request.path == "/stream") {
    reply->begin_stream(200, "text/event-stream");
    for (const std::string_view piece : {"one", "", "two", "three"}) reply->write(piece);
    reply->end();
  } else if (request.path == "/throw") {
    fail(ErrorCode::kInvalid, "a secret of the server");
  } else if (request.path != "/forget") {
    Lock lock(mutex_);
    kept_.push_back(std::move(reply));
    changed_.notify_all();
  }
}

std::shared_ptr<HttpReply> HttpTestServer::next_reply() {
  Lock lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::seconds(10),
                         [this]() SKEIN_REQUIRES(mutex_) { return !kept_.empty(); })) {
    fail(ErrorCode::kInternal, "no request came in 10 s");
  }
  auto reply = std::move(kept_.front());
  kept_.erase(kept_.begin());
  return reply;
}

bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace skein
