#include "skein/launch/node/host_probe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <thread>

#include "skein/base/error.h"

namespace skein {
namespace {

// Listens on a free port of the loopback interface, and never accepts.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    address_ = fmt::format("127.0.0.1:{}", ntohs(at.sin_port));
  }
  const std::string& address() const { return address_; }
  void close() { socket_ = FileDescriptor(); }

 private:
  FileDescriptor socket_;
  std::string address_;
};

// Whether any of these refuses within so many seconds.
std::optional<std::string> refused_within(HostProbe& probe, double seconds,
                                          const std::vector<std::string>& addresses) {
  for (const auto start = Clock::now(); seconds_since(start) < seconds;) {
    const std::vector<std::string> refused = probe.refused(addresses);
    if (!refused.empty()) return refused.front();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return std::nullopt;
}

TEST(HostProbe, WhereNobodyListensAnyMoreIsRefusedWhereSomebodyDoesIsNot) {
  Listener lives, goes;
  HostProbe probe;
  EXPECT_EQ(refused_within(probe, 0.1, {lives.address(), goes.address()}), std::nullopt);
  goes.close();
  EXPECT_EQ(refused_within(probe, 20, {lives.address(), goes.address()}), goes.address());
  EXPECT_EQ(refused_within(probe, 0.1, {lives.address()}), std::nullopt);
}

TEST(HostProbe, WhatIsNoAddressRefusesNothing) {
  HostProbe probe;
  EXPECT_EQ(refused_within(probe, 0.05, {"", "nowhere", "10.0.0.1", "1.2.3.4:x", "256.1.1.1:80"}),
            std::nullopt);
}

}  // namespace
}  // namespace skein
