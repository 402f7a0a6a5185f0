#include "skein/record/watch/prometheus.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/record/watch/prometheus_text.h"

namespace skein {
namespace {

FileDescriptor connect_to(int port) {
  FileDescriptor client(::socket(AF_INET, SOCK_STREAM, 0));
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof address),
            0);
  return client;
}

// The whole answer to `request`.
std::string ask(int port, const std::string& request) {
  const FileDescriptor client = connect_to(port);
  ::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string response;
  char buffer[4096];
  for (ssize_t count; (count = ::recv(client.get(), buffer, sizeof buffer, 0)) > 0;) {
    response.append(buffer, static_cast<size_t>(count));
  }
  return response;
}

TEST(Prometheus, WritesTheTextFormat) {
  PrometheusText prometheus;
  add_step_metrics(
      prometheus,
      {.metrics = {.step = 7, .loss = 2.5f, .grad_norm = std::nanf(""), .tokens = 28672},
       .total_steps = 100,
       .memory_bytes = 1 << 20});
  prometheus.family("time_seconds", "gauge", "By part.");
  prometheus.sample(1.5, "part=\"saving\"");
  const std::string& text = prometheus.text();
  EXPECT_NE(text.find("\nskein_time_seconds{part=\"saving\"} 1.5\n"), std::string::npos);
  EXPECT_NE(text.find("# HELP skein_loss Mean cross-entropy per token of the newest step, in "
                      "nats.\n# TYPE skein_loss gauge\nskein_loss 2.5\n"),
            std::string::npos);
  EXPECT_NE(text.find("# TYPE skein_tokens_total counter\nskein_tokens_total 28672\n"),
            std::string::npos);
  EXPECT_NE(text.find("\nskein_grad_norm NaN\n"), std::string::npos);
  EXPECT_NE(text.find("\nskein_memory_bytes 1048576\n"), std::string::npos);
}

TEST(Prometheus, TellsTheEpochsOfEachSource) {
  StepMetrics metrics;
  metrics.epochs = {{"web", 0.25F}, {"a \"b\" \\ c", 1.5F}};
  PrometheusText prometheus;
  add_step_metrics(prometheus, {.metrics = metrics});
  EXPECT_NE(prometheus.text().find("\nskein_source_epochs{source=\"web\"} 0.25\n"
                                   "skein_source_epochs{source=\"a \\\"b\\\" \\\\ c\"} 1.5\n"),
            std::string::npos);
}

TEST(Prometheus, ServesTheNewestText) {
  std::atomic<int> step = 1;
  PrometheusServer server(ListenAddress::find("127.0.0.1:0"),
                          [&] { return fmt::format("skein_step {}\n", step++); });
  ask(server.port(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string response = ask(server.port(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(response.find("HTTP/1.1 200 OK\r\n"), 0u);
  EXPECT_NE(response.find("Content-Type: text/plain; version=0.0.4"), std::string::npos);
  EXPECT_NE(response.find("\r\nContent-Length: 13\r\n"), std::string::npos);
  EXPECT_NE(response.find("\r\n\r\nskein_step 2\n"), std::string::npos);
}

TEST(Prometheus, RefusesOtherRequests) {
  PrometheusServer server(ListenAddress::find("127.0.0.1:0"), [] { return std::string(); });
  EXPECT_NE(ask(server.port(), "GET / HTTP/1.1\r\n\r\n").find(" 404 "), std::string::npos);
  EXPECT_NE(ask(server.port(), "GET /metricsx HTTP/1.1\r\n\r\n").find(" 404 "), std::string::npos);
  EXPECT_NE(ask(server.port(), "POST /metrics HTTP/1.1\r\n\r\n").find(" 405 "), std::string::npos);
  EXPECT_NE(ask(server.port(), std::string(8192, 'x')).find(" 400 "), std::string::npos);
}

TEST(Prometheus, ASilentClientDoesNotBlockTheOthers) {
  PrometheusServer server(ListenAddress::find("127.0.0.1:0"),
                          [] { return std::string("skein_step 3\n"); });
  const FileDescriptor silent = connect_to(server.port());
  EXPECT_NE(ask(server.port(), "GET /metrics HTTP/1.1\r\n\r\n").find("skein_step 3"),
            std::string::npos);
}

// Whoever ends a server does not wait for its clients, nor for what is to be served.
TEST(Prometheus, AServerEndsWhileAClientIsAnswered) {
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_asked = false, is_open = false;
  };
  const auto gate = std::make_shared<Gate>();
  auto server = std::make_unique<PrometheusServer>(ListenAddress::find("127.0.0.1:0"), [gate] {
    std::unique_lock lock(gate->mutex);
    gate->is_asked = true;
    gate->changed.notify_all();
    gate->changed.wait(lock, [&] { return gate->is_open; });
    return std::string("skein_step 3\n");
  });
  const int port = server->port();
  std::string answer;
  std::thread scraper([&] { answer = ask(port, "GET /metrics HTTP/1.1\r\n\r\n"); });
  {
    std::unique_lock lock(gate->mutex);
    gate->changed.wait(lock, [&] { return gate->is_asked; });
  }
  server.reset();
  EXPECT_TRUE(answer.empty());
  const PrometheusServer again(ListenAddress::find(fmt::format("127.0.0.1:{}", port)),
                               [] { return std::string("x"); });
  {
    const std::lock_guard lock(gate->mutex);
    gate->is_open = true;
    gate->changed.notify_all();
  }
  scraper.join();
  EXPECT_NE(answer.find("skein_step 3"), std::string::npos) << "who was being answered still is";
}

// What a text waits for does not count against the time in which its answer must be taken.
TEST(Prometheus, ATextThatTakesLongerThanADeadlineIsAnswered) {
  const PrometheusServer server(ListenAddress::find("127.0.0.1:0"), [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    return std::string("late\n");
  });
  EXPECT_NE(ask(server.port(), "GET /metrics HTTP/1.1\r\n\r\n").find("late"), std::string::npos);
}

TEST(Prometheus, SaysWhichAddressFails) {
  const PrometheusServer first(ListenAddress::find("127.0.0.1:0"), [] { return std::string(); });
  const std::string taken = "127.0.0.1:" + std::to_string(first.port());
  for (const std::string& address : {taken, std::string("127.0.0.1:http"), std::string("none")}) {
    try {
      PrometheusServer server(ListenAddress::find(address), [] { return std::string(); });
      FAIL() << address;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(std::string(error.what()).find(address), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace skein
