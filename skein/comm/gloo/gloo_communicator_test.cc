#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <numeric>

#include "skein/base/error.h"
#include "tests/comm/ranks.h"
#include "tests/comm/trial.h"

namespace skein::comm_test {
namespace {

using Kind = CollectiveKind;

class EverySize : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, EverySize, testing::Range(1, 6));

TEST_P(EverySize, EveryKindDtypeAndShape) {
  over_each_transport([] {
    run_ranks(GetParam(), [](const WorldOptions& options) {
      const auto world = make_world(options);
      uint64_t seed = 0;
      for (const Kind kind : kTrialKinds) {
        for (const DType dtype : kTrialDTypes) {
          for (const std::vector<int64_t>& sizes :
               {std::vector<int64_t>{0}, {1}, {3, 0, 7}, {1000}, {17, 70001}}) {
            for (const bool in_place : {false, true}) {
              Trial(*world, kind, dtype, sizes, in_place, ++seed).run_and_check();
            }
          }
        }
      }
    });
  });
}

// Ranks that hold unequal branches of a larger tree.
TEST_P(EverySize, SumsOfBranches) {
  run_ranks(GetParam(), [](const WorldOptions& options) {
    const auto world = make_world(options);
    std::vector<int> all(static_cast<size_t>(options.size));
    std::iota(all.begin(), all.end(), 0);
    uint64_t seed = 0;
    for (int64_t leaves = options.size; leaves < 3 * options.size; ++leaves) {
      const auto group = world->group(all, "dp", leaves);
      for (const Kind kind : kSums) {
        for (const DType dtype : kTrialDTypes) {
          for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{17, 70001}, {3, 0, 7}}) {
            Trial(*group, kind, dtype, sizes, true, ++seed).of_tree(leaves).run_and_check();
          }
        }
      }
    }
  });
}

TEST_P(EverySize, ManyInFlightInTwoGroupsWaitedForBackwards) {
  over_each_transport([] {
    run_ranks(GetParam(), [](const WorldOptions& options) {
      const auto world = make_world(options);
      std::vector<int> mine;
      for (int rank = options.rank % 2; rank < options.size; rank += 2) mine.push_back(rank);
      const auto parity = world->group(mine, "parity");
      const auto again = world->group(mine, "parity");  // the same name, but other slots
      EXPECT_EQ(parity->rank(), options.rank / 2);
      EXPECT_EQ(parity->size(), static_cast<int>(mine.size()));
      for (Communicator* second : {parity.get(), again.get()}) {
        std::vector<std::unique_ptr<Trial>> trials;
        for (uint64_t i = 0; i < 30; ++i) {
          Communicator& group = i % 2 == 0 ? *world : *second;
          trials.push_back(std::make_unique<Trial>(group, kTrialKinds[i / 2 % 6],
                                                   kTrialDTypes[i % 4],
                                                   std::vector<int64_t>{37, 5000}, i % 3 == 0, i));
          trials.back()->start();
        }
        for (auto at = trials.rbegin(); at != trials.rend(); ++at) (*at)->wait();
        for (const auto& trial : trials) trial->check();
      }
    });
  });
}

TEST_P(EverySize, SumsThatGoOnBeforeAnybodyWaits) {
  over_each_transport([] {
    run_ranks(GetParam(), [](const WorldOptions& options) {
      const auto world = make_world(options);
      std::vector<std::unique_ptr<Trial>> trials;
      for (uint64_t i = 0; i < 12; ++i) {
        const Kind kind = i % 3 == 2 ? Kind::kReduceScatter : Kind::kAllReduce;
        trials.push_back(std::make_unique<Trial>(*world, kind, kTrialDTypes[i % 4],
                                                 std::vector<int64_t>{37, 5000}, i % 2 == 0, i));
        world->advance_before(trials.back()->start());
      }
      for (const auto& trial : trials) {
        trial->wait();
        trial->check();
      }
    });
  });
}

TEST(GlooCommunicator, GroupsStartInAnyOrderToEachOther) {
  over_each_transport([] {
    run_ranks(2, [](const WorldOptions& options) {
      const auto world = make_world(options);
      const auto a = world->group({0, 1}, "a"), b = world->group({0, 1}, "b");
      Trial first(*a, Kind::kAllGather, DType::kF32, {100000}, false, 1);
      Trial second(*b, Kind::kReduceScatter, DType::kF32, {100000}, false, 2);
      options.rank == 0 ? (first.start(), second.start()) : (second.start(), first.start());
      first.wait();
      second.wait();
      first.check();
      second.check();
    });
  });
}

TEST(GlooCommunicator, NeighboursThatBothSendFirstDoNotLock) {
  over_each_transport([] {
    run_ranks(4, [](const WorldOptions& options) {
      const auto world = make_world(options);
      const int n = options.size, next = (options.rank + 1) % n,
                previous = (options.rank + n - 1) % n;
      constexpr int64_t kElements = 4 << 20;  // more than a socket buffers
      std::vector<float> forward(kElements, static_cast<float>(options.rank)), backward(forward);
      std::vector<float> from_previous(kElements), from_next(kElements);
      const auto message = [&](Kind kind, int peer, std::vector<float>& data) {
        Collective call{.kind = kind, .peer = peer};
        call.parts.push_back({.input = data.data(), .output = data.data(), .elements = kElements});
        return call;
      };
      for (int round = 0; round < 2; ++round) {
        std::vector<Communicator::Ticket> tickets;
        tickets.push_back(world->start(message(Kind::kSend, next, forward)));
        tickets.push_back(world->start(message(Kind::kSend, previous, backward)));
        tickets.push_back(world->start(message(Kind::kReceive, previous, from_previous)));
        tickets.push_back(world->start(message(Kind::kReceive, next, from_next)));
        for (const auto ticket : tickets) world->wait(ticket);
        EXPECT_EQ(from_previous, std::vector<float>(kElements, static_cast<float>(previous)));
        EXPECT_EQ(from_next, std::vector<float>(kElements, static_cast<float>(next)));
      }
      EXPECT_EQ(world->count(Kind::kSend).sent_bytes, 4 * kElements * 4);
      EXPECT_EQ(world->count(Kind::kReceive).received_bytes, 4 * kElements * 4);
    });
  });
}

TEST(GlooCommunicator, MessagesOfAPairKeepTheirOrderBesideCollectives) {
  over_each_transport([] {
    run_ranks(2, [](const WorldOptions& options) {
      const auto world = make_world(options);
      const Kind kind = options.rank == 0 ? Kind::kSend : Kind::kReceive;
      std::vector<int32_t> data(64);
      for (int i = 0; i < 64; ++i) data[i] = options.rank == 0 ? i : -1;
      std::vector<Communicator::Ticket> tickets;
      Trial sum(*world, Kind::kAllReduce, DType::kF32, {999}, true, 5);
      if (options.rank == 0) sum.start();
      for (int32_t& value : data) {
        Collective call{.kind = kind, .dtype = DType::kI32, .peer = 1 - options.rank};
        call.parts.push_back({.input = &value, .output = &value, .elements = 1});
        tickets.push_back(world->start(call));
      }
      if (options.rank == 1) sum.start();
      sum.wait();
      sum.check();
      for (const auto ticket : tickets) world->wait(ticket);
      for (int i = 0; i < 64; ++i) EXPECT_EQ(data[i], i);
    });
  });
}

TEST(GlooCommunicator, ARankMayLeaveRightAfterItsLastCollective) {
  over_each_transport([] {
    for (int round = 0; round < 20; ++round) {
      run_ranks(2, [&](const WorldOptions& options) {
        const auto world = make_world(options);
        Trial trial(*world, round % 2 == 0 ? Kind::kAllGather : Kind::kAllReduce, DType::kF32,
                    {1 << 18}, true, static_cast<uint64_t>(round));
        trial.start();
        if (options.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(round / 2));
        trial.wait();
        trial.check();
      });
    }
  });
}

TEST(GlooCommunicator, MovesHundredsOfMegabytes) {
  run_ranks(2, [](const WorldOptions& options) {
    const auto world = make_world(options);
    constexpr int64_t kElements = (int64_t{256} << 20) / 4 + 3;
    std::vector<int32_t> data(kElements, options.rank + 1);
    std::vector<char> scratch(kElements * 4);
    Collective call{.kind = Kind::kAllReduce, .dtype = DType::kI32, .scratch = scratch.data()};
    call.parts.push_back({.input = data.data(), .output = data.data(), .elements = kElements});
    world->run(call);
    EXPECT_EQ(std::count(data.begin(), data.end(), 3), kElements);
  });
}

// Memory of all ranks, in which one says that it is done.
class SharedFlag {
 public:
  void raise() { *raised_ = true; }
  bool is_raised_in_time() const {
    for (int ms = 0; ms < kAtOnceS * 1000 && !*raised_; ++ms) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return *raised_;
  }

 private:
  std::atomic<bool>* raised_ =
      new (mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<bool>(false);
};

// Rank 1 computes, which is to call nothing, until rank 0 has everything.
TEST(GlooCommunicator, TransfersWhileTheCallerComputes) {
  setenv("SKEIN_SHARED_MEMORY", "off", 1);  // through which ranks take part when they wait
  SharedFlag done;
  run_ranks(2, [&](const WorldOptions& options) {
    const auto world = make_world(options);
    Trial trial(*world, Kind::kAllGather, DType::kF32, {4 << 20}, true, 3);
    world->run({});  // both ranks have arrived
    trial.start();
    EXPECT_TRUE(options.rank == 0 || done.is_raised_in_time());
    trial.wait();
    done.raise();
    trial.check();
  });
  unsetenv("SKEIN_SHARED_MEMORY");
}

TEST(GlooCommunicator, SumsGoOnWhileAPeerComputes) {
  setenv("SKEIN_SHARED_MEMORY", "off", 1);  // through which ranks take part when they wait
  SharedFlag done;
  run_ranks(2, [&](const WorldOptions& options) {
    const auto world = make_world(options);
    Trial first(*world, Kind::kAllReduce, DType::kF32, {1 << 20}, true, 3);
    Trial second(*world, Kind::kAllReduce, DType::kF32, {10}, true, 4);
    world->run({});
    first.start();
    world->advance_before(second.start());
    EXPECT_TRUE(options.rank == 0 || done.is_raised_in_time()) << "rank 0 waits for its peer";
    first.wait();
    done.raise();
    first.check();
    second.wait();
    second.check();
  });
  unsetenv("SKEIN_SHARED_MEMORY");
}

}  // namespace
}  // namespace skein::comm_test
