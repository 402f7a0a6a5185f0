// How long the supervisor's thread waits for those who watch its run.
//
//   scrape_bench [--mib N] [--scrapers N] [--seconds N] [--dir FOLDER]
//
// Makes a metrics.jsonl of N MiB, lets scrapers read /metrics without a pause, and meanwhile does
// what the supervisor's thread of a leading machine does: it says that another generation begins
// and, once a second, that this machine leads no more and leads again. Prints one JSON line: the
// longest of these calls, to be below 0.1 s, and how long the scrapes took. Exit code 1 above that.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/machine/clock.h"
#include "skein/record/files/events.h"
#include "skein/record/files/metrics.h"
#include "skein/record/watch/on_call.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kMostSeconds = 0.1;
constexpr double kRefusedSeconds = 0.1;  // a connection that nobody takes ends sooner

struct Options {
  int64_t mib = 1024;
  int scrapers = 10;
  double seconds = 20;
  std::string dir;
};

void make_run(const fs::path& folder, int64_t bytes) {
  EventLog(folder).append("start", {{"number", 1}, {"step", 0}});
  {
    MetricsLog metrics(folder);
    for (int64_t step = 1; step <= 1000; ++step) {
      metrics.append({.step = step,
                      .loss = 3.25F,
                      .grad_norm = 1.5F,
                      .tokens = step * 4096,
                      .time = 1.7e9 + static_cast<double>(step),
                      .start = 1,
                      .clock = static_cast<double>(step)});
    }
  }
  const fs::path path = folder / "metrics.jsonl";
  const std::string lines = read_file(path);
  std::ofstream file(path, std::ios::app | std::ios::binary);
  for (int64_t size = std::ssize(lines); size < bytes; size += std::ssize(lines)) file << lines;
}

int free_port() {
  const PrometheusServer server(ListenAddress::find("127.0.0.1:0"), [] { return std::string(); });
  return server.port();
}

// Bytes of the answer to one scrape; 0: there was none.
size_t scrape(int port) {
  const FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* to = reinterpret_cast<struct sockaddr*>(&address);
  if (::connect(client.get(), to, sizeof address) != 0) return 0;
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  ::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL);
  size_t bytes = 0;
  char buffer[4096];
  for (ssize_t count; (count = ::recv(client.get(), buffer, sizeof buffer, 0)) > 0;) {
    bytes += static_cast<size_t>(count);
  }
  return bytes;
}

double seconds_of(const std::function<void()>& call) {
  const auto start = Clock::now();
  call();
  return seconds_since(start);
}

int run(const Options& options) {
  const fs::path folder =
      (options.dir.empty() ? fs::temp_directory_path() : fs::path(options.dir)) /
      fmt::format("scrape_bench.{}", ::getpid());
  fs::create_directories(folder);
  make_run(folder, options.mib << 20);
  Config config;
  config.run.dir = folder.string();
  const int port = free_port();
  config.log.prometheus = fmt::format("127.0.0.1:{}", port);

  double longest = 0, longest_scrape = 0;
  std::atomic<bool> ends = false, may_cut = false;
  std::atomic<int64_t> answers = 0, unanswered = 0;
  std::vector<double> slowest(static_cast<size_t>(options.scrapers));
  {
    OnCall on_call(config);
    on_call.lead(true);
    std::vector<std::thread> scrapers;
    for (double& worst : slowest) {
      scrapers.emplace_back([&worst, &ends, &may_cut, &answers, &unanswered, port] {
        while (!ends) {
          size_t bytes = 0;
          const double took = seconds_of([&] { bytes = scrape(port); });
          if (bytes > 0) {
            ++answers;
            worst = std::max(worst, took);
          } else if (took > kRefusedSeconds) {
            if (!may_cut) ++unanswered;
          } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        }
      });
    }
    const auto start = Clock::now();
    for (int64_t i = 1; seconds_since(start) < options.seconds; ++i) {
      // In the second half the server ends now and then, and cuts off whom it has not answered.
      if (seconds_since(start) > options.seconds / 2) may_cut = true;
      if (may_cut && i % 100 == 0) {
        longest = std::max(longest, seconds_of([&] { on_call.lead(false); }));
      }
      const Cluster cluster{.generation = i, .hosts = 2, .hosts_wanted = 2};
      longest = std::max(longest, seconds_of([&] { on_call.lead(true, cluster); }));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ends = true;
    for (std::thread& scraper : scrapers) scraper.join();
    for (const double worst : slowest) longest_scrape = std::max(longest_scrape, worst);
  }
  fs::remove_all(folder);
  fmt::print(
      "{{\"mib\": {}, \"scrapers\": {}, \"scrapes\": {}, \"unanswered\": {}, "
      "\"longest_scrape_s\": {:.3f}, \"supervisor_longest_wait_s\": {:.4f}}}\n",
      options.mib, options.scrapers, answers.load(), unanswered.load(), longest_scrape, longest);
  return longest < kMostSeconds && unanswered == 0 ? 0 : 1;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  CLI::App app("The supervisor's longest wait while its run is scraped");
  skein::Options options;
  app.add_option("--mib", options.mib, "of metrics.jsonl");
  app.add_option("--scrapers", options.scrapers, "at a time");
  app.add_option("--seconds", options.seconds, "to measure");
  app.add_option("--dir", options.dir, "for the run's files");
  CLI11_PARSE(app, argc, argv);
  return skein::run(options);
}
