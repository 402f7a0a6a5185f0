// How fast a copy of the state goes from one machine's memory to another's, over the loopback, with
// the encryption that it has (replica/secure_socket.h) and over the bare socket that it had before.
//
//   replica_bench [--mib N] [--rounds N]
//
// Both with the checksum of the bytes at both ends, in turns. Prints one JSON line of medians:
// MB/s, the processor seconds of both ends for 1 GB, which a busy machine changes little, and the
// milliseconds of connecting and of both proofs.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/replica/wire.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

const ReplicaKey kKey = {'b', 'e', 'n', 'c', 'h'};
constexpr size_t kPiece = size_t{1} << 20;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Listener {
  Listener() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    socklen_t size = sizeof at;
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    if (::bind(socket.get(), address, size) != 0 || ::listen(socket.get(), 1) != 0 ||
        ::getsockname(socket.get(), address, &size) != 0) {
      fail(ErrorCode::kIo, "cannot listen on the loopback interface: {}", errno_text(errno));
    }
  }
  FileDescriptor accept() const {
    return FileDescriptor(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  FileDescriptor socket;
  sockaddr_in at{};
};

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Rate {
  std::vector<double> mb_per_s, cpu_s_per_gb;

  void add(size_t bytes, double seconds, double cpu_seconds) {
    mb_per_s.push_back(static_cast<double>(bytes) / 1e6 / seconds);
    cpu_s_per_gb.push_back(cpu_seconds / (static_cast<double>(bytes) / 1e9));
  }
  std::string text(const char* kind) const {
    return fmt::format("\"{0}_mb_per_s\": {1:.0f}, \"{0}_cpu_s_per_gb\": {2:.2f}", kind,
                       median(mb_per_s), median(cpu_s_per_gb));
  }
};

struct Rates {
  std::vector<double> connect_ms;
  Rate plain, encrypted;
};

void send_encrypted(const Bytes& from, Bytes& to, Rates& rates) {
  const Listener listener;
  std::thread other([&] {
    ReplicaSocket socket(listener.accept(), "bench");
    socket.expect_proof("node", kKey, Clock::now() + std::chrono::seconds(20));
    socket.receive_checked(to);
    socket.send_number(1);
  });
  const auto begin = Clock::now();
  auto socket = ReplicaSocket::connect_to(
      {fmt::format("127.0.0.1:{}", ntohs(listener.at.sin_port)), "node"}, kKey);
  rates.connect_ms.push_back(seconds_since(begin) * 1e3);
  const auto connected = Clock::now();
  const double cpu = processor_seconds();
  socket.send_checked(from);
  socket.receive_number();
  rates.encrypted.add(from.size(), seconds_since(connected), processor_seconds() - cpu);
  other.join();
}

void send_plain(const Bytes& from, Bytes& to, Rates& rates) {
  const Listener listener;
  std::string found;
  std::thread other([&] {
    const FileDescriptor socket = listener.accept();
    for (size_t at = 0; at < to.size();) {
      const ssize_t got = ::recv(socket.get(), to.data() + at, std::min(kPiece, to.size() - at), 0);
      if (got <= 0) return;
      at += static_cast<size_t>(got);
    }
    found = xxh3_128_hex(to);
    (void)::send(socket.get(), found.data(), found.size(), MSG_NOSIGNAL);
  });
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&listener.at),
                sizeof listener.at) != 0) {
    fail(ErrorCode::kIo, "cannot connect: {}", errno_text(errno));
  }
  const auto begin = Clock::now();
  const double cpu = processor_seconds();
  for (size_t at = 0; at < from.size();) {
    const ssize_t sent =
        ::send(socket.get(), from.data() + at, std::min(kPiece, from.size() - at), MSG_NOSIGNAL);
    if (sent <= 0) fail(ErrorCode::kIo, "cannot send: {}", errno_text(errno));
    at += static_cast<size_t>(sent);
  }
  std::string checksum = xxh3_128_hex(from);
  std::string answer(checksum.size(), ' ');
  (void)::recv(socket.get(), answer.data(), answer.size(), MSG_WAITALL);
  rates.plain.add(from.size(), seconds_since(begin), processor_seconds() - cpu);
  other.join();
  if (answer != checksum) fail(ErrorCode::kCorrupt, "other bytes arrived");
}

int run(int64_t mib, int rounds) {
  Bytes from(static_cast<size_t>(mib) << 20, std::byte{1}), to(from.size(), std::byte{2});
  Rates rates;
  for (int round = 0; round < rounds; ++round) {
    send_plain(from, to, rates);
    send_encrypted(from, to, rates);
  }
  fmt::print("{{\"mib\": {}, {}, {}, \"connect_ms\": {:.2f}}}\n", mib, rates.plain.text("plain"),
             rates.encrypted.text("encrypted"), median(rates.connect_ms));
  return 0;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  CLI::App app("How fast copies of the state go from machine to machine.");
  int64_t mib = 1024;
  int rounds = 5;
  app.add_option("--mib", mib, "size of the copy")->check(CLI::Range(1, 65536));
  app.add_option("--rounds", rounds, "of which the median is printed")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  try {
    return skein::run(mib, rounds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "replica_bench: {}\n", error.what());
    return 1;
  }
}
