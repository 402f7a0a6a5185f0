#include "skein/record/watch/prometheus.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <string_view>
#include <thread>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/threads/mutex.h"
#include "skein/base/threads/quiet_thread.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kClientDeadline = std::chrono::seconds(1);
constexpr size_t kMaxRequestBytes = 8192;

// Waits until `fd` is ready or the deadline has passed.
bool wait_for(int fd, short events, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  struct pollfd entry {
    fd, events, 0
  };
  return left.count() > 0 && ::poll(&entry, 1, static_cast<int>(left.count())) == 1;
}

// Reads the head of a request; incomplete if the deadline passes first.
std::string read_request(int client, Clock::time_point deadline) {
  std::string request;
  char buffer[1024];
  while (request.size() < kMaxRequestBytes && request.find("\r\n\r\n") == std::string::npos) {
    if (!wait_for(client, POLLIN, deadline)) break;
    const ssize_t count = ::recv(client, buffer, sizeof buffer, MSG_DONTWAIT);
    if (count <= 0) break;
    request.append(buffer, static_cast<size_t>(count));
  }
  return request;
}

void send_response(int client, std::string_view response, Clock::time_point deadline) {
  while (!response.empty() && wait_for(client, POLLOUT, deadline)) {
    const ssize_t count =
        ::send(client, response.data(), response.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count <= 0) return;
    response.remove_prefix(static_cast<size_t>(count));
  }
}

std::string make_response(std::string_view request, const std::function<std::string()>& text) {
  constexpr const char* kFormat =
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}";
  const std::string_view line = request.substr(0, request.find("\r\n"));
  if (request.find("\r\n\r\n") == std::string_view::npos) {
    return fmt::format(kFormat, "400 Bad Request", "text/plain", 0, "");
  }
  if (!line.starts_with("GET ")) {
    return fmt::format(kFormat, "405 Method Not Allowed", "text/plain", 0, "");
  }
  if (!line.starts_with("GET /metrics ") && !line.starts_with("GET /metrics?")) {
    return fmt::format(kFormat, "404 Not Found", "text/plain", 13, "see /metrics\n");
  }
  const std::string body = text();
  return fmt::format(kFormat, "200 OK", "text/plain; version=0.0.4; charset=utf-8", body.size(),
                     body);
}

FileDescriptor open_listener(const ListenAddress& address) {
  FileDescriptor listener(
      ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (listener.get() < 0 ||
      ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const struct sockaddr*>(&address.bytes),
             address.size) != 0 ||
      ::listen(listener.get(), 16) != 0) {
    fail(ErrorCode::kUsage, "cannot serve metrics at {}: {}", address.text, errno_text(errno));
  }
  return listener;
}

// The clients that wait for an answer; of the listener and of the thread that answers, which may
// outlive it.
class Clients {
 public:
  explicit Clients(std::function<std::string()> text) : text_(std::move(text)) {}

  void add(FileDescriptor client) {
    const Lock lock(mutex_);
    if (waiting_.size() >= PrometheusServer::kMostWaiting) return;
    waiting_.push_back(std::move(client));
    changed_.notify_one();
  }
  void end() {
    const Lock lock(mutex_);
    ends_ = true;
    changed_.notify_one();
  }
  void answer_all() {
    for (;;) {
      const FileDescriptor client = next();
      if (client.get() < 0) return;
      const Clock::time_point deadline = Clock::now() + kClientDeadline;
      const std::string request = read_request(client.get(), deadline);
      const std::string response =
          make_response(request, text_);  // text_ has a deadline of its own
      send_response(client.get(), response, Clock::now() + kClientDeadline);
      ::shutdown(client.get(), SHUT_WR);
    }
  }

 private:
  FileDescriptor next() {
    Lock lock(mutex_);
    changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) { return ends_ || !waiting_.empty(); });
    if (ends_) return {};
    FileDescriptor client = std::move(waiting_.front());
    waiting_.pop_front();
    return client;
  }

  const std::function<std::string()> text_;
  Mutex mutex_;  // held for no call that waits
  ConditionVariable changed_;
  std::deque<FileDescriptor> waiting_ SKEIN_GUARDED_BY(mutex_);
  bool ends_ SKEIN_GUARDED_BY(mutex_) = false;
};

}  // namespace

ListenAddress ListenAddress::find(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) {
    fail(ErrorCode::kUsage, "prometheus address {}: expected host:port", text);
  }
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  struct addrinfo hints {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  struct addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found);
  if (status != 0) {
    fail(ErrorCode::kUsage, "prometheus address {}: {}", text, ::gai_strerror(status));
  }
  const std::unique_ptr<struct addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  ListenAddress address{.text = text, .size = found->ai_addrlen};
  std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);
  return address;
}

class PrometheusServer::Listener {
 public:
  Listener(const ListenAddress& address, std::function<std::string()> text)
      : socket_(open_listener(address)),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        clients_(std::make_shared<Clients>(std::move(text))) {
    if (stop_.get() < 0) fail(ErrorCode::kIo, "cannot make an eventfd: {}", errno_text(errno));
    quiet_thread([clients = clients_] { clients->answer_all(); }).detach();
    thread_ = quiet_thread([this] { accept_all(); });
  }

  ~Listener() {
    const uint64_t one = 1;
    // Writing to an eventfd can fail only when its counter is about to overflow.
    [[maybe_unused]] const ssize_t count = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
    clients_->end();
  }

  int port() const {
    char host[NI_MAXHOST], service[NI_MAXSERV];
    struct sockaddr_storage bound {};
    socklen_t size = sizeof bound;
    auto* address = reinterpret_cast<struct sockaddr*>(&bound);
    if (::getsockname(socket_.get(), address, &size) != 0 ||
        ::getnameinfo(address, size, host, sizeof host, service, sizeof service,
                      NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
      fail(ErrorCode::kIo, "cannot tell the port of the metrics server: {}", errno_text(errno));
    }
    return std::stoi(service);
  }

 private:
  void accept_all() {
    while (true) {
      struct pollfd entries[2] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      if (::poll(entries, 2, -1) < 0) continue;  // interrupted by a signal
      if (entries[1].revents != 0) return;
      FileDescriptor client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.get() >= 0) {
        clients_->add(std::move(client));
      } else {
        ::poll(&entries[1], 1, 100);  // wait after an error such as EMFILE instead of spinning
      }
    }
  }

  FileDescriptor socket_;
  FileDescriptor stop_;
  const std::shared_ptr<Clients> clients_;
  std::thread thread_;
};

PrometheusServer::PrometheusServer(const ListenAddress& address, std::function<std::string()> text)
    : listener_(std::make_unique<Listener>(address, std::move(text))) {}
PrometheusServer::~PrometheusServer() = default;
int PrometheusServer::port() const { return listener_->port(); }

}  // namespace skein
