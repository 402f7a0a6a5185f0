// Peers that are silent, leave or fail.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include "skein/base/machine/clock.h"
#include "tests/comm/deadlines.h"
#include "tests/comm/losses.h"
#include "tests/comm/nccl_ranks.h"

namespace skein::comm_test {
namespace {

using Kind = CollectiveKind;
class NcclFailures : public NcclRanks {};

std::string loss_seen_by(Communicator& host) {
  return loss_of([&] {
    for (;;) {
      host.check({});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
}

// As a step does: starts, waits, and looks once the device has come to the end of it.
std::string loss_in_step(const Rank& rank, Communicator& group, const Collective& call) {
  return loss_of([&] {
    group.run(call);
    rank.device->synchronize();
    group.check({});
  });
}

TEST_F(NcclFailures, ASilentPeerIsLostAtTheDeadlineAndItsCauseTravels) {
  run(3, [](const WorldOptions& options) {
    const Rank rank(options);
    const auto dp = rank.world->group({0, 1, 2}, "dp");
    rank.world->set_step(41);
    const Trial trial(*dp, Kind::kAllReduce, DType::kF32, {1000}, true, 1, rank.memory());
    Collective call = trial.call();
    dp->run(call);
    rank.device->synchronize();
    const auto start = Clock::now();
    // Rank 2 computes without end; rank 0 comes to its deadline first.
    if (options.rank == 0) call.timeout_s = 0.5;
    const std::string text =
        options.rank == 2 ? loss_seen_by(*rank.host) : loss_in_step(rank, *dp, call);
    EXPECT_GT(seconds_since(start), options.rank == 0 ? 0.4 : 0.0);
    EXPECT_LT(seconds_since(start), kAtOnceS);
    expect_says(text, {"[all-reduce] trial, step 41: one of ranks 1, 2 of 'dp' (world ranks 1, 2)",
                       "did not take part within 0.5 s", "collective_timeout_s"});
    EXPECT_EQ(loss_in_step(rank, *dp, call), text);
    EXPECT_EQ(loss_of([&] { dp->start(call); }), text);
    EXPECT_EQ(loss_of([&] { rank.host->run({}); }), text);
  });
}

TEST_F(NcclFailures, APeerThatEndsIsSeenAtOnce) {
  run(2, [](const WorldOptions& options) {
    std::optional<Rank> rank(options);
    const auto start = Clock::now();
    try {
      const auto pp = rank->world->group({0, 1}, "pp");
      const Message message(*rank, 0);
      pp->run(message.call(options.rank == 0 ? Kind::kReceive : Kind::kSend, 1 - options.rank));
      rank->device->synchronize();
      if (options.rank == 1) throw std::runtime_error("of its own");
      expect_says(loss_in_step(*rank, *pp, message.call(Kind::kReceive, 1)),
                  {"[receive] boundary", "world rank 1"});
    } catch (const std::runtime_error& error) {
      if (dynamic_cast<const Error*>(&error) != nullptr) throw;
    }
    EXPECT_LT(seconds_since(start), kAtOnceS);
  });
}

TEST_F(NcclFailures, AnErrorInTheMiddleLetsGoAndIsTold) {
  run(2, [](const WorldOptions& options) {
    const Rank rank(options);
    const auto start = Clock::now();
    const Message message(rank, 0);
    try {
      const auto pp = rank.world->group({0, 1}, "pp");
      pp->run(message.call(options.rank == 0 ? Kind::kSend : Kind::kReceive, 1 - options.rank));
      rank.device->synchronize();
      if (options.rank == 1) {
        pp->start(message.call(Kind::kReceive, 0));
        throw std::runtime_error("of its own");
      }
      expect_says(loss_seen_by(*rank.host),
                  {"world rank 1 gave up group 'pp' in the middle of [receive] boundary"});
    } catch (const Error&) {
      throw;
    } catch (const std::runtime_error&) {
    }
    EXPECT_LT(seconds_since(start), kAtOnceS);
  });
}

TEST_F(NcclFailures, APeerThatDoesNotComeToConnectIsNamed) {
  run(2, [](WorldOptions options) {
    options.timeout_s = 0.5;
    const Rank rank(options);
    const auto dp = rank.world->group({0, 1}, "dp");
    if (options.rank == 0) {
      loss_of([&] { rank.host->run({.timeout_s = 10}); });
      return;
    }
    expect_says(loss_of([&] { dp->run({.label = "alone"}); }), {"connecting NCCL", "rank 0"});
  });
}

}  // namespace
}  // namespace skein::comm_test
