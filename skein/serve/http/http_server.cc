#include "skein/serve/http/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/base/threads/quiet_thread.h"
#include "skein/serve/http/http_connection.h"

namespace skein {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

using Acceptor = asio::basic_socket_acceptor<tcp, HttpStrand>;

// A bracketed form for IPv6, as in URLs.
std::string endpoint_text(const asio::ip::address& address, int port) {
  const std::string host = address.to_string();
  return address.is_v6() ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

tcp::endpoint parse_endpoint(const HttpServerOptions& options) {
  if (options.port < 0 || options.port > 65535) {
    fail(ErrorCode::kUsage,
         "the port to listen on is {}: expected 1 to 65535, or 0 for any that is "
         "free",
         options.port);
  }
  error_code error;
  const std::string numeric = options.address == "localhost" ? "127.0.0.1" : options.address;
  const asio::ip::address address = asio::ip::make_address(numeric, error);
  if (error) {
    fail(ErrorCode::kUsage,
         "the address to listen on is {:?}: expected a numeric address, such as "
         "127.0.0.1, ::1, or 0.0.0.0 for all of this machine; or localhost",
         options.address);
  }
  return {address, static_cast<uint16_t>(options.port)};
}

[[noreturn]] void fail_to_listen(const tcp::endpoint& endpoint, const error_code& error) {
  const std::string place = endpoint_text(endpoint.address(), endpoint.port());
  if (error == asio::error::address_in_use) {
    fail(ErrorCode::kBusy,
         "cannot listen on {}: the port is in use by another process; choose "
         "another one, or 0 for any that is free",
         place);
  }
  if (error == error_code(EADDRNOTAVAIL, boost::system::system_category())) {
    fail(ErrorCode::kUsage,
         "cannot listen on {}: this machine does not have the address; expected "
         "one that `ip addr` lists, or 0.0.0.0 for all of them",
         place);
  }
  if (error == asio::error::access_denied) {
    fail(ErrorCode::kIo, "cannot listen on {}: this user may not; choose a port above 1023", place);
  }
  fail(ErrorCode::kIo, "cannot listen on {}: {}", place, errno_text(error.value()));
}

void check(const HttpServerOptions& options) {
  const HttpLimits& limits = options.limits;
  const auto at_least = [](std::string_view name, int64_t value, int64_t least) {
    if (value < least) {
      fail(ErrorCode::kUsage, "the server's {} is {}: expected at least {}", name, value, least);
    }
  };
  at_least("number of threads", options.num_threads, 1);
  at_least("limit of connections", limits.connections, 1);
  at_least("limit of bytes of a head", limits.header_bytes, 256);
  at_least("limit of bytes of a body", limits.body_bytes, 0);
  if (limits.header_bytes > 1 << 30) {
    fail(ErrorCode::kUsage, "the server's limit of bytes of a head is {}: expected at most {}",
         limits.header_bytes, 1 << 30);
  }
}

// What the kernel does for a connection: small pieces go out at once; a client whose machine is
// gone, with or without bytes on their way to it, is noticed within the time to write.
void set_options(HttpSocket& socket, const HttpLimits& limits) {
  const int descriptor = socket.native_handle();
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  const auto set = [&](int level, int name, int value) {
    ::setsockopt(descriptor, level, name, &value, sizeof(value));
  };
  const int milliseconds =
      static_cast<int>(std::min<int64_t>(limits.write_timeout.count(), 1 << 30));
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds);
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpServerOptions& options, HttpHandler handler);
  void listen(const tcp::endpoint& endpoint);
  void accept();
  void on_accept(const error_code& error, HttpSocket socket);
  void admit(HttpSocket socket);
  void run();
  int64_t stop(std::chrono::milliseconds grace);

  std::shared_ptr<HttpServerCore> core;
  Acceptor acceptor;
  HttpTimer pause;  // between attempts to accept
  std::chrono::steady_clock::time_point warned{};
  asio::executor_work_guard<asio::io_context::executor_type> work;
  tcp::endpoint endpoint;
  std::vector<std::thread> threads;
};

HttpServer::Impl::Impl(const HttpServerOptions& options, HttpHandler handler)
    : core(std::make_shared<HttpServerCore>(options, std::move(handler))),
      acceptor(asio::make_strand(core->io)),
      pause(acceptor.get_executor()),
      work(core->io.get_executor()) {
  listen(parse_endpoint(options));
  accept();
  try {
    for (int i = 0; i < options.num_threads; ++i) {
      threads.push_back(quiet_thread([this] { run(); }));
    }
  } catch (const std::system_error& error) {
    stop(std::chrono::milliseconds(0));
    fail(ErrorCode::kIo, "no thread to be had for the server: {}", error.what());
  }
}

void HttpServer::Impl::listen(const tcp::endpoint& wanted) {
  error_code error;
  acceptor.open(wanted.protocol(), error);
  if (error) fail_to_listen(wanted, error);
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  acceptor.set_option(Acceptor::reuse_address(true), error);
  if (wanted.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  acceptor.bind(wanted, error);
  if (!error) acceptor.listen(Acceptor::max_listen_connections, error);
  if (error) fail_to_listen(wanted, error);
  endpoint = acceptor.local_endpoint();
}

void HttpServer::Impl::accept() {
  acceptor.async_accept(
      asio::make_strand(core->io),
      [this](const error_code& error, HttpSocket socket) { on_accept(error, std::move(socket)); });
}

void HttpServer::Impl::on_accept(const error_code& error, HttpSocket socket) {
  if (!acceptor.is_open()) return;
  if (!error) {
    try {
      admit(std::move(socket));
    } catch (const std::exception& failure) {
      log::error("a connection was not taken: {}", failure.what());
    }
    return accept();
  }
  if (error == asio::error::connection_aborted) return accept();
  // Most likely there is no free descriptor: those that wait are accepted once there is.
  const auto now = std::chrono::steady_clock::now();
  if (now - warned > std::chrono::minutes(1)) {
    warned = now;
    log::warn("connections wait: {}; `ulimit -n` shows how many files this process may have open",
              errno_text(error.value()));
  }
  pause.expires_after(std::chrono::milliseconds(100));
  pause.async_wait([this](const error_code& stopped) {
    if (!stopped && acceptor.is_open()) accept();
  });
}

void HttpServer::Impl::admit(HttpSocket socket) {
  ++core->counters.connections_total;
  set_options(socket, core->options.limits);
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const auto connection = std::make_shared<HttpConnection>(
      core, std::move(socket), endpoint_text(peer.address(), peer.port()));
  switch (core->connections.add(connection, core->options.limits.connections)) {
    case HttpConnections::Admission::kServe:
      return connection->start();
    case HttpConnections::Admission::kRefuse:
      ++core->counters.connections_refused;
      return connection->refuse();
    case HttpConnections::Admission::kDrop:
      ++core->counters.connections_refused;
  }
}

void HttpServer::Impl::run() {
  while (true) {
    try {
      core->io.run();
      return;
    } catch (const std::exception& error) {
      log::error("a step of the server failed: {}", error.what());
    }
  }
}

int64_t HttpServer::Impl::stop(std::chrono::milliseconds grace) {
  if (!work.owns_work()) return 0;
  asio::post(acceptor.get_executor(), [this] {
    error_code ignored;
    acceptor.close(ignored);
    pause.cancel();
  });
  for (const auto& connection : core->connections.stop_adding()) connection->stop();
  int64_t num_cut = 0;
  if (!core->connections.wait_until_none(grace)) {
    for (const auto& connection : core->connections.all()) {
      connection->cut();
      ++num_cut;
    }
  }
  work.reset();
  for (std::thread& thread : threads) thread.join();
  return num_cut;
}

HttpServer::HttpServer(const HttpServerOptions& options, HttpHandler handler) {
  check(options);
  impl_ = std::make_unique<Impl>(options, std::move(handler));
}

HttpServer::~HttpServer() { stop(std::chrono::milliseconds(0)); }

int HttpServer::port() const { return impl_->endpoint.port(); }

std::string HttpServer::url() const {
  return "http://" + endpoint_text(impl_->endpoint.address(), port());
}

HttpCounts HttpServer::counts() const {
  const HttpCounters& counters = impl_->core->counters;
  HttpCounts counts{.connections_open = impl_->core->connections.num_served(),
                    .connections_total = counters.connections_total,
                    .connections_refused = counters.connections_refused,
                    .requests_cancelled = counters.requests_cancelled,
                    .bytes_received = counters.bytes_received,
                    .bytes_sent = counters.bytes_sent,
                    .answers_of_status = {}};
  for (size_t status = 0; status < counters.answers.size(); ++status) {
    const int64_t number = counters.answers[status];
    if (number > 0) counts.answers_of_status[static_cast<int>(status)] = number;
  }
  return counts;
}

int64_t HttpServer::stop(std::chrono::milliseconds grace) { return impl_->stop(grace); }

}  // namespace skein
