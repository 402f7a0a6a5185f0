#include "skein/record/prometheus.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <string_view>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/file.h"
#include "skein/base/mutex.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kClientDeadline = std::chrono::seconds(1);
constexpr size_t kMaxRequestBytes = 8192;

template <typename Number>
void append_metric(std::string& text, const char* name, const char* type, const char* help,
                   Number value) {
  text += fmt::format("# HELP skein_{0} {2}\n# TYPE skein_{0} {1}\nskein_{0} ", name, type, help);
  if (!std::isfinite(static_cast<double>(value))) {
    text += std::isnan(static_cast<double>(value)) ? "NaN\n" : value > 0 ? "+Inf\n" : "-Inf\n";
  } else {
    text += fmt::format("{}\n", value);
  }
}

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

std::string make_response(std::string_view request, const std::string& text) {
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
  return fmt::format(kFormat, "200 OK", "text/plain; version=0.0.4; charset=utf-8", text.size(),
                     text);
}

FileDescriptor open_listener(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    fail(ErrorCode::kUsage, "prometheus address {}: expected host:port", address);
  }
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  struct addrinfo hints {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  struct addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found);
  if (status != 0) {
    fail(ErrorCode::kUsage, "prometheus address {}: {}", address, ::gai_strerror(status));
  }
  const std::unique_ptr<struct addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  FileDescriptor listener(
      ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (listener.get() < 0 ||
      ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(listener.get(), 16) != 0) {
    fail(ErrorCode::kUsage, "cannot serve metrics at {}: {}", address, errno_text(errno));
  }
  return listener;
}

}  // namespace

std::string prometheus_text(const PrometheusSample& sample) {
  const StepMetrics& metrics = sample.metrics;
  std::string text;
  const auto gauge = [&](const char* name, auto value, const char* help) {
    append_metric(text, name, "gauge", help, value);
  };
  gauge("step", metrics.step, "The newest step; 1 is the first update.");
  gauge("steps_planned", sample.total_steps, "Steps of the whole run.");
  gauge("loss", metrics.loss, "Mean cross-entropy per token of the newest step, in nats.");
  gauge("learning_rate", metrics.learning_rate, "Learning rate of the newest step.");
  gauge("grad_norm", metrics.grad_norm, "Global gradient norm before clipping.");
  gauge("param_norm", metrics.param_norm, "Global norm of the parameters.");
  append_metric(text, "tokens_total", "counter", "Tokens trained on since the run began.",
                metrics.tokens);
  gauge("epoch", metrics.epoch, "How often the corpus was read since the run began.");
  gauge("tokens_per_second", metrics.tokens_per_s, "Throughput of the newest step.");
  gauge("step_seconds", metrics.step_ms / 1000, "Wall time of the newest step.");
  gauge("data_wait_seconds", metrics.data_wait_ms / 1000, "Waiting for data in the newest step.");
  gauge("checkpoint_stall_seconds", metrics.checkpoint_stall_ms / 1000,
        "Standing still for a checkpoint in the newest step.");
  gauge("comm_exposed_seconds", metrics.comm_exposed_ms / 1000,
        "Communication that no computation hid in the newest step.");
  gauge("model_flops_utilization", metrics.matmul_ceiling_share,
        "matmul_ceiling_share, under its name of before.");
  gauge("matmul_ceiling_share", metrics.matmul_ceiling_share,
        "Share of the measured matrix-product rate of all ranks, 0 to 1.");
  if (metrics.peak_utilization > 0) {
    gauge("peak_utilization", metrics.peak_utilization,
          "Share of the matrix-product rate that the maker of the device advertises, 0 to 1.");
  }
  gauge("memory_bytes", sample.memory_bytes, "Memory of the arenas.");
  gauge("grad_spike_steps", sample.spike_steps,
        "Steps that the present gradient spike has lasted.");
  gauge("last_step_timestamp_seconds", metrics.time, "Unix time at the end of the newest step.");
  return text;
}

class PrometheusServer::Listener {
 public:
  explicit Listener(const std::string& address)
      : socket_(open_listener(address)), stop_(::eventfd(0, EFD_CLOEXEC)) {
    if (stop_.get() < 0) fail(ErrorCode::kIo, "cannot make an eventfd: {}", errno_text(errno));
    thread_ = std::thread([this] { serve(); });
  }

  ~Listener() {
    const uint64_t one = 1;
    // Writing to an eventfd can fail only when its counter is about to overflow.
    [[maybe_unused]] const ssize_t count = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  void publish(std::string text) {
    const Lock lock(mutex_);
    text_ = std::move(text);
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
  void serve() {
    while (true) {
      struct pollfd entries[2] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      if (::poll(entries, 2, -1) < 0) continue;  // interrupted by a signal
      if (entries[1].revents != 0) return;
      const FileDescriptor client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.get() >= 0) {
        answer(client.get());
      } else {
        ::poll(&entries[1], 1, 100);  // wait after an error such as EMFILE instead of spinning
      }
    }
  }

  void answer(int client) {
    const Clock::time_point deadline = Clock::now() + kClientDeadline;
    const std::string request = read_request(client, deadline);
    std::string text;
    {
      const Lock lock(mutex_);
      text = text_;
    }
    send_response(client, make_response(request, text), deadline);
    ::shutdown(client, SHUT_WR);
  }

  FileDescriptor socket_;
  FileDescriptor stop_;
  Mutex mutex_;
  std::string text_ SKEIN_GUARDED_BY(mutex_);
  std::thread thread_;
};

PrometheusServer::PrometheusServer(const std::string& address)
    : listener_(std::make_unique<Listener>(address)) {}
PrometheusServer::~PrometheusServer() = default;
void PrometheusServer::publish(std::string text) { listener_->publish(std::move(text)); }
int PrometheusServer::port() const { return listener_->port(); }

}  // namespace skein
