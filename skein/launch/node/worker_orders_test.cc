#include "skein/launch/node/worker_orders.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

#include "skein/base/error.h"
#include "tests/error_of.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

volatile sig_atomic_t g_stops = 0;

// The supervisor's end of a worker's orders.
class WorkerOrders : public testing::Test {
 protected:
  WorkerOrders() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
    worker_.orders = ends[0];
    socket_ = FileDescriptor(ends[1]);
    its_end_ = FileDescriptor(ends[0]);
    worker_.standard_output = STDOUT_FILENO;
    worker_.standard_error = STDERR_FILENO;
    g_stops = 0;
    former_ = std::signal(SIGTERM, [](int) { g_stops = g_stops + 1; });
  }
  ~WorkerOrders() override { std::signal(SIGTERM, former_); }

  void say(const std::string& text) {
    EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
  }
  std::string hear() {
    std::array<char, 64> text{};
    const ssize_t size = ::recv(socket_.get(), text.data(), text.size(), 0);
    return {text.data(), static_cast<size_t>(std::max<ssize_t>(0, size))};
  }
  void close() { socket_ = FileDescriptor(); }

  const test::TempFolder folder_;
  RankInfo worker_;
  const std::string next_ =
      "SKEIN_RANK=0\nSKEIN_SIZE=2\nSKEIN_LOCAL_RANK=0\nSKEIN_LOCAL_SIZE=2\nSKEIN_START_ID=a\n";

 private:
  FileDescriptor socket_, its_end_;
  void (*former_)(int) = nullptr;
};

TEST_F(WorkerOrders, AStopOfTheOldGenerationIsForgottenOneOfTheNextIsNot) {
  std::thread supervisor([this] {
    EXPECT_EQ(hear(), "ended 76");
    ::kill(::getpid(), SIGTERM);
    say("noted");
    EXPECT_EQ(hear(), "ready");
    say(next_);
  });
  const auto next = next_generation(worker_, 76, folder_.path());
  supervisor.join();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->size, 2);
  EXPECT_EQ(next->orders, worker_.orders);
  EXPECT_EQ(g_stops, 0);

  supervisor = std::thread([this] {
    EXPECT_EQ(hear(), "ended 76");
    say("noted");
    EXPECT_EQ(hear(), "ready");
    ::kill(::getpid(), SIGTERM);
    say(next_);
  });
  EXPECT_TRUE(next_generation(worker_, 76, folder_.path()));
  supervisor.join();
  EXPECT_EQ(g_stops, 1);
}

TEST_F(WorkerOrders, WhereThereIsNoNextGenerationTheProcessEnds) {
  std::thread supervisor([this] {
    hear();
    say("noted");
    hear();
    close();
  });
  EXPECT_FALSE(next_generation(worker_, 76, folder_.path()));
  supervisor.join();
  EXPECT_FALSE(next_generation(worker_, 76, folder_.path()));  // nobody is there
}

TEST_F(WorkerOrders, WhatIsNoAnnouncementIsRefused) {
  std::thread supervisor([this] {
    hear();
    say("noted");
    hear();
    say("train on");
  });
  EXPECT_THAT(test::error_of([&] { next_generation(worker_, 76, folder_.path()); }),
              AllOf(HasSubstr("\"train on\""), HasSubstr("NAME=value")));
  supervisor.join();
}

}  // namespace
}  // namespace skein
