#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "tests/comm/losses.h"
#include "tests/comm/ranks.h"

namespace skein::comm_test {
namespace {

using Kind = CollectiveKind;

struct AllReduce {
  explicit AllReduce(int64_t elements) : data(elements, 1.0f), scratch(4 * elements + 1024) {
    call = {.kind = Kind::kAllReduce, .scratch = scratch.data(), .label = "grads.3"};
    call.parts.push_back({.input = data.data(), .output = data.data(), .elements = elements});
  }
  std::vector<float> data;
  std::vector<char> scratch;
  Collective call;
};

// Memory that nothing has touched yet.
struct Message {
  explicit Message(int64_t bytes) : data(new char[static_cast<size_t>(bytes)]), bytes(bytes) {}
  Collective call(Kind kind, int peer) const {
    Collective call{.kind = kind, .dtype = DType::kI32, .peer = peer, .label = "boundary"};
    call.parts.push_back({.input = data.get(), .output = data.get(), .elements = bytes / 4});
    return call;
  }
  std::unique_ptr<char[]> data;
  int64_t bytes;
};

[[noreturn]] void die() {
  raise(SIGKILL);
  _exit(3);
}

TEST(GlooFailures, ADeadPeerEndsTheWorldAtOnceForAll) {
  over_each_transport([] {
    Ranks ranks(3, [](const WorldOptions& options) {
      const auto world = make_world(options);
      const auto dp = world->group({0, 1, 2}, "dp");
      world->set_step(41);
      AllReduce sum(1000);
      dp->run(sum.call);
      if (options.rank == 2) die();
      const auto start = Clock::now();
      const std::string first = loss_of([&] { dp->run(sum.call); });
      EXPECT_LT(seconds_since(start), kAtOnceS);
      expect_says(first,
                  {"[all-reduce] grads.3", "step 41", "rank 2 of 'dp' (world rank 2)", "log"});
      const auto later = Clock::now();
      EXPECT_EQ(loss_of([&] { world->run({}); }), first);
      EXPECT_EQ(loss_of([&] { dp->start(sum.call); }), first);
      EXPECT_LT(seconds_since(later), kAtOnceS);  // waits for nobody
    });
    EXPECT_TRUE(ranks.passed(0));
    EXPECT_TRUE(ranks.passed(1));
  });
}

// A peer that dies while a message is half read or half written.
TEST(GlooFailures, ADeathInMidMessageIsSeenAtOnce) {
  over_each_transport([] {
    for (const bool sender_dies : {true, false}) {
      Ranks ranks(2, [&](const WorldOptions& options) {
        const auto world = make_world(options);
        const Message message(int64_t{512} << 20);
        world->run({});
        const bool dies = options.rank == 1;
        const auto ticket = world->start(
            message.call(dies == sender_dies ? Kind::kSend : Kind::kReceive, 1 - options.rank));
        if (dies) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          die();
        }
        const auto start = Clock::now();
        const std::string text = loss_of([&] { world->wait(ticket); });
        EXPECT_LT(seconds_since(start), kAtOnceS);
        expect_says(text, {"boundary", "rank 1 of 'world' (world rank 1)"});
      });
      EXPECT_TRUE(ranks.passed(0)) << sender_dies;
    }
  });
}

TEST(GlooFailures, AStoppedPeerIsLostAtTheDeadline) {
  over_each_transport([] {
    Ranks ranks(3, [](const WorldOptions& options) {
      const auto world = make_world(options);
      AllReduce sum(1000);
      world->run(sum.call);
      if (options.rank == 1) raise(SIGSTOP);
      sum.call.timeout_s = 1;
      const auto start = Clock::now();
      const std::string text = loss_of([&] { world->run(sum.call); });
      EXPECT_GT(seconds_since(start), 0.8);
      EXPECT_LT(seconds_since(start), kAtOnceS);
      expect_says(text, {"grads.3", "rank 1 of 'world'", "within 1.0 s", "collective_timeout_s"});
    });
    EXPECT_TRUE(ranks.passed(0));
    EXPECT_TRUE(ranks.passed(2));
  });
}

// Rank 0 waits for 1, which waits for 2, which dies: 0 is told of 2.
TEST(GlooFailures, TheFirstCauseTravels) {
  over_each_transport([] {
    Ranks ranks(3, [](const WorldOptions& options) {
      const auto world = make_world(options);
      world->run({});
      if (options.rank == 2) die();
      const Message message(64);
      const std::string text =
          loss_of([&] { world->run(message.call(Kind::kReceive, options.rank + 1)); });
      expect_says(text, {"[receive] boundary", "world rank 2"});
    });
    EXPECT_TRUE(ranks.passed(0));
    EXPECT_TRUE(ranks.passed(1));
  });
}

TEST(GlooFailures, ARankThatDoesSomethingElseMeetsTheDeadline) {
  over_each_transport([] {
    run_ranks(2, [](WorldOptions options) {
      options.timeout_s = 0.5;
      const auto world = make_world(options);
      AllReduce sum(1000);
      sum.call.dtype = options.rank == 0 ? DType::kF32 : DType::kI32;
      expect_says(loss_of([&] { world->run(sum.call); }), {"grads.3", "did not take part"});
    });
  });
}

TEST(GlooFailures, GivingUpInTheMiddleLetsGoOfTheMemory) {
  over_each_transport([] {
    run_ranks(2, [](const WorldOptions& options) {
      const auto world = make_world(options);
      world->run({});
      auto message = std::make_unique<Message>(int64_t{64} << 20);
      if (options.rank == 1) {
        world->group({0, 1}, "pp")->start(message->call(Kind::kReceive, 0));
        message.reset();
        loss_of([&] { world->run({}); });
      } else {
        const auto pp = world->group({0, 1}, "pp");
        expect_says(loss_of([&] {
                      for (;;) pp->run(message->call(Kind::kSend, 1));
                    }),
                    {"gave up group 'pp' in the middle of [receive] boundary"});
      }
    });
  });
}

// The error that `check` throws in the end.
std::string loss_seen_by(Communicator& group) {
  return loss_of([&] {
    for (;;) {
      group.check({.kind = Kind::kSend, .label = "boundary"});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
}

TEST(GlooFailures, ACheckWaitsForNobodyAndSeesADeadPeer) {
  Ranks ranks(3, [](const WorldOptions& options) {
    const auto world = make_world(options);
    const auto dp = world->group({0, 1, 2}, "dp");
    const auto start = Clock::now();
    for (int i = 0; i < 100; ++i) dp->check({});
    world->run({});
    if (options.rank == 2) die();
    expect_says(loss_seen_by(*dp), {"[send] boundary", "world rank 2"});
    EXPECT_LT(seconds_since(start), kAtOnceS);
  });
  EXPECT_TRUE(ranks.passed(0));
  EXPECT_TRUE(ranks.passed(1));
}

TEST(GlooFailures, AnEndIsToldToAll) {
  over_each_transport([] {
    run_ranks(2, [](const WorldOptions& options) {
      const auto world = make_world(options);
      const auto dp = world->group({0, 1}, "dp");
      dp->check({});
      world->run({});
      if (options.rank == 1) dp->end("the first cause");
      EXPECT_EQ(loss_seen_by(*dp), "the first cause");
      EXPECT_EQ(loss_of([&] { world->run({}); }), "the first cause");
    });
  });
}

TEST(GlooFailures, AnAbsentRankIsNamed) {
  Ranks ranks(
      4,
      [](WorldOptions options) {
        options.start_timeout_s = 3;  // the three that come are there by then
        const auto start = Clock::now();
        const std::string text = loss_of([&] { make_world(options); });
        EXPECT_LT(seconds_since(start), kAtOnceS);
        expect_says(text, {"rank 2 of 4 did not arrive within 3.0 s", "rendezvous folder"});
      },
      2);
  ranks.expect_passed();
}

TEST(GlooFailures, AnotherWorldSizeAndARankThatCameTwiceAreRefused) {
  const auto usage_of = [](const WorldOptions& options) {
    try {
      make_world(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  run_ranks(2, [&](WorldOptions options) {
    options.size += options.rank;
    options.start_timeout_s = 2;
    expect_says(usage_of(options), {"was started in a world of", "in a world of"});
    expect_says(usage_of(options), {"already in the rendezvous folder"});
    options.rank = 5;
    expect_says(usage_of(options), {"rank 5 of a world"});
  });
}

TEST(GlooFailures, AnUnknownInterfaceIsNamed) {
  setenv("SKEIN_NETWORK_INTERFACE", "no_such_card", 1);
  run_ranks(2, [&](const WorldOptions& options) {
    try {
      make_world(options);
      ADD_FAILURE() << "no_such_card was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      expect_says(error.what(), {"SKEIN_NETWORK_INTERFACE=no_such_card"});
    }
  });
  setenv("SKEIN_NETWORK_INTERFACE", "lo", 1);
  run_ranks(2, [](const WorldOptions& options) { make_world(options)->run({}); });
  unsetenv("SKEIN_NETWORK_INTERFACE");
}

}  // namespace
}  // namespace skein::comm_test
