#include <gtest/gtest.h>

#include <memory>

#include "skein/base/error.h"
#include "skein/comm/shares.h"
#include "skein/comm/testing/ranks.h"
#include "skein/comm/testing/terms.h"

namespace skein::comm_test {
namespace {

using Kind = CollectiveKind;
constexpr Kind kKinds[] = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                           Kind::kAllToAll,  Kind::kBroadcast,     Kind::kBarrier};
constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kBF16};

// One collective with its memory, and what must come out of it.
class Trial {
 public:
  Trial(Communicator& group, Kind kind, DType dtype, std::vector<int64_t> sizes, bool in_place,
        uint64_t seed)
      : group_(group), seed_(seed) {
    call_ = {.kind = kind, .dtype = dtype, .label = "trial"};
    call_.peer = static_cast<int>(seed % static_cast<uint64_t>(group.size()));
    for (int64_t elements : sizes) {
      const int64_t n = group.size(), share = (elements + n - 1) / n;
      if (kind == Kind::kAllToAll) elements = share * n;
      const bool shared = kind != Kind::kAllReduce && kind != Kind::kBroadcast;
      if (kind != Kind::kBarrier)
        call_.parts.push_back({.elements = elements, .share = shared ? share : 0});
    }
    memory_.resize(2 * call_.parts.size());
    for (size_t i = 0; i < call_.parts.size(); ++i) prepare(i, in_place);
    scratch_.resize(static_cast<size_t>(collective_scratch_bytes(call_, group.size())));
    call_.scratch = scratch_.data();
  }

  Communicator::Ticket start() { return ticket_ = group_.start(call_); }
  void wait() { group_.wait(ticket_); }

  void run_and_check() {
    const WireCount before = group_.count(call_.kind);
    start();
    wait();
    check();
    const WireCount after = group_.count(call_.kind);
    EXPECT_EQ(after.calls - before.calls, 1);
    EXPECT_EQ(after.sent_bytes - before.sent_bytes,
              collective_sent_bytes(call_, group_.rank(), group_.size()))
        << collective_name(call_.kind);
  }

  void check() const {
    for (size_t i = 0; i < call_.parts.size(); ++i) {
      const Bytes expected = expected_of(i);
      const auto* output = static_cast<const char*>(call_.parts[i].output);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), output))
          << collective_name(call_.kind) << " of " << call_.parts[i].elements << " "
          << dtype_name(call_.dtype) << " over " << group_.size() << ", part " << i;
    }
  }

 private:
  Bytes whole_of(int rank, size_t part) const {
    return term(call_.dtype, call_.parts[part].elements,
                seed_ * 1000 + part * 100 + static_cast<uint64_t>(rank));
  }
  Bytes share_bytes(const Bytes& whole, size_t part, int rank) const {
    const auto [begin, bytes] = share_of(call_, call_.parts[part], group_.size(), rank);
    return {whole.begin() + begin, whole.begin() + begin + bytes};
  }

  void prepare(size_t i, bool in_place) {
    CollectivePart& part = call_.parts[i];
    Bytes &input = memory_[2 * i], &output = memory_[2 * i + 1];
    const Bytes whole = whole_of(group_.rank(), i);
    const auto own = share_of(call_, part, group_.size(), group_.rank());
    output.assign(whole.size(), 0x55);
    input = call_.kind == Kind::kAllGather ? share_bytes(whole, i, group_.rank()) : whole;
    part.input = input.data();
    part.output = output.data();
    if (!in_place) return;
    if (call_.kind == Kind::kAllGather) {
      std::copy(input.begin(), input.end(), output.begin() + own.begin);
      part.input = output.data() + own.begin;
    } else if (call_.kind == Kind::kReduceScatter) {
      part.output = input.data() + own.begin;
    } else if (call_.kind == Kind::kAllReduce || call_.kind == Kind::kBroadcast) {
      part.output = input.data();
    }
  }

  Bytes expected_of(size_t i) const {
    std::vector<Bytes> all;
    for (int rank = 0; rank < group_.size(); ++rank) all.push_back(whole_of(rank, i));
    Bytes joined;
    switch (call_.kind) {
      case Kind::kAllReduce:
        return serial_sum(call_.dtype, all);
      case Kind::kReduceScatter:
        return share_bytes(serial_sum(call_.dtype, all), i, group_.rank());
      case Kind::kBroadcast:
        return all[static_cast<size_t>(call_.peer)];
      default:
        break;
    }
    for (int rank = 0; rank < group_.size(); ++rank) {
      const int which = call_.kind == Kind::kAllToAll ? group_.rank() : rank;
      const Bytes share = share_bytes(all[static_cast<size_t>(rank)], i, which);
      joined.insert(joined.end(), share.begin(), share.end());
    }
    return joined;
  }

  Communicator& group_;
  uint64_t seed_;
  Collective call_;
  std::vector<Bytes> memory_;  // input, output of each part
  Bytes scratch_;
  Communicator::Ticket ticket_ = -1;
};

class EverySize : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, EverySize, testing::Range(1, 6));

TEST_P(EverySize, EveryKindDtypeAndShape) {
  run_ranks(GetParam(), [](const WorldOptions& options) {
    const auto world = make_world(options);
    uint64_t seed = 0;
    for (const Kind kind : kKinds) {
      for (const DType dtype : kDTypes) {
        for (const std::vector<int64_t>& sizes :
             {std::vector<int64_t>{0}, {1}, {3, 0, 7}, {1000}, {17, 70001}}) {
          for (const bool in_place : {false, true}) {
            Trial(*world, kind, dtype, sizes, in_place, ++seed).run_and_check();
          }
        }
      }
    }
  });
}

TEST_P(EverySize, ManyInFlightInTwoGroupsWaitedForBackwards) {
  run_ranks(GetParam(), [](const WorldOptions& options) {
    const auto world = make_world(options);
    std::vector<int> mine;
    for (int rank = options.rank % 2; rank < options.size; rank += 2) mine.push_back(rank);
    const auto parity = world->group(mine, "parity");
    const auto again = world->group(mine, "parity");  // the same name: other slots
    EXPECT_EQ(parity->rank(), options.rank / 2);
    EXPECT_EQ(parity->size(), static_cast<int>(mine.size()));
    for (Communicator* second : {parity.get(), again.get()}) {
      std::vector<std::unique_ptr<Trial>> trials;
      for (uint64_t i = 0; i < 30; ++i) {
        Communicator& group = i % 2 == 0 ? *world : *second;
        trials.push_back(std::make_unique<Trial>(group, kKinds[i / 2 % 6], kDTypes[i % 4],
                                                 std::vector<int64_t>{37, 5000}, i % 3 == 0, i));
        trials.back()->start();
      }
      for (auto at = trials.rbegin(); at != trials.rend(); ++at) (*at)->wait();
      for (const auto& trial : trials) trial->check();
    }
  });
}

TEST(GlooCommunicator, GroupsStartInAnyOrderToEachOther) {
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
}

TEST(GlooCommunicator, NeighboursThatBothSendFirstDoNotLock) {
  run_ranks(4, [](const WorldOptions& options) {
    const auto world = make_world(options);
    const int n = options.size, next = (options.rank + 1) % n,
              previous = (options.rank + n - 1) % n;
    constexpr int64_t kElements = 4 << 20;  // more than any socket holds
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
}

TEST(GlooCommunicator, MessagesOfAPairKeepTheirOrderBesideCollectives) {
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
}

TEST(GlooCommunicator, ARankMayLeaveRightAfterItsLastCollective) {
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

TEST(GlooCommunicator, TransfersWhileTheCallerComputes) {
  run_ranks(2, [](const WorldOptions& options) {
    const auto world = make_world(options);
    Trial trial(*world, Kind::kAllGather, DType::kF32, {4 << 20}, true, 3);
    world->run({});  // both here
    trial.start();
    // Nobody waits for a while; then all is there already.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const auto begin = std::chrono::steady_clock::now();
    trial.wait();
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(waited.count(), 0.25);
    trial.check();
  });
}

}  // namespace
}  // namespace skein::comm_test
