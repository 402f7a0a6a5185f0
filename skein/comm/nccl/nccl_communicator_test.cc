#include "skein/comm/nccl/nccl_communicator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/comm/nccl_ranks.h"

namespace skein::comm_test {
namespace {

using Kind = CollectiveKind;
class NcclEverySize : public NcclRanks, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, NcclEverySize, testing::Range(1, 6));

TEST_P(NcclEverySize, EveryKindDtypeAndShape) {
  run(GetParam(), [](const WorldOptions& options) {
    const Rank rank(options);
    uint64_t seed = 0;
    for (const Kind kind : kTrialKinds) {
      for (const DType dtype : kTrialDTypes) {
        for (const std::vector<int64_t>& sizes :
             {std::vector<int64_t>{0}, {1}, {3, 0, 7}, {1000}, {240, 16}, {17, 7001}}) {
          for (const bool in_place : {false, true}) {
            Trial(*rank.world, kind, dtype, sizes, in_place, ++seed, rank.memory()).run_and_check();
          }
        }
      }
    }
  });
}

TEST_P(NcclEverySize, ManyInFlightInTwoGroupsWaitedForBackwards) {
  run(GetParam(), [](const WorldOptions& options) {
    const Rank rank(options);
    std::vector<int> mine;
    for (int member = options.rank % 2; member < options.size; member += 2) mine.push_back(member);
    const auto parity = rank.world->group(mine, "parity");
    const auto again = rank.world->group(mine, "parity");
    EXPECT_EQ(parity->rank(), options.rank / 2);
    EXPECT_EQ(parity->size(), static_cast<int>(mine.size()));
    for (Communicator* second : {parity.get(), again.get()}) {
      std::vector<std::unique_ptr<Trial>> trials;
      for (uint64_t i = 0; i < 30; ++i) {
        Communicator& group = i % 2 == 0 ? *rank.world : *second;
        trials.push_back(std::make_unique<Trial>(group, kTrialKinds[i / 2 % 6], kTrialDTypes[i % 4],
                                                 std::vector<int64_t>{37, 5000}, i % 3 == 0, i,
                                                 rank.memory()));
        trials.back()->announce();
      }
      for (const auto& trial : trials) trial->start();
      for (auto at = trials.rbegin(); at != trials.rend(); ++at) (*at)->wait();
      for (const auto& trial : trials) trial->check();
    }
  });
}

// Beyond what a kernel adds in registers.
TEST_F(NcclRanks, SumsOfManyRanks) {
  for (const int size : {8, 19}) {
    run(size, [](const WorldOptions& options) {
      const Rank rank(options);
      uint64_t seed = 0;
      for (const DType dtype : kTrialDTypes) {
        for (const int64_t elements : {8 * 19 * 16, 1003}) {
          Trial(*rank.world, Kind::kReduceScatter, dtype, {elements}, true, ++seed, rank.memory())
              .run_and_check();
        }
      }
    });
  }
}

// Ranks that hold unequal branches of a larger tree; with 19 beyond what registers hold.
TEST_F(NcclRanks, SumsOfBranches) {
  for (const auto& [size, leaves] : {std::pair{3, 4}, {5, 8}, {3, 7}, {4, 6}, {19, 24}}) {
    run(size, [leaves = leaves](const WorldOptions& options) {
      const Rank rank(options);
      std::vector<int> all(static_cast<size_t>(options.size));
      std::iota(all.begin(), all.end(), 0);
      const auto group = rank.world->group(all, "dp", leaves);
      uint64_t seed = 0;
      for (const Kind kind : kSums) {
        for (const DType dtype : kTrialDTypes) {
          for (const int64_t elements : {8 * 19 * 16, 1003}) {
            Trial(*group, kind, dtype, {elements}, true, ++seed, rank.memory())
                .of_tree(leaves)
                .run_and_check();
          }
        }
      }
    });
  }
}

TEST_P(NcclEverySize, FastSumsAreAboutRight) {
  run(GetParam(), [](const WorldOptions& options) {
    const Rank rank(options, Sums::kFast);
    uint64_t seed = 0;
    for (const Kind kind : {Kind::kReduceScatter, Kind::kAllReduce}) {
      for (const bool in_place : {false, true}) {
        Trial integers(*rank.world, kind, DType::kI32, {240, 17}, in_place, ++seed, rank.memory());
        integers.run_and_check();  // their order does not matter
        Trial trial(*rank.world, kind, DType::kF32, {240, 17}, in_place, ++seed, rank.memory());
        trial.start();
        trial.wait();
        for (size_t part = 0; part < 2; ++part) {
          const Bytes expected = trial.expected_of(part);
          const std::vector<float> wanted = values_of<float>(expected),
                                   got = values_of<float>(trial.read(part, expected.size()));
          for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-3);
        }
      }
    }
  });
}

TEST_F(NcclRanks, AGroupOfOneMovesNothingAndNeedsNoPeer) {
  run(2, [](const WorldOptions& options) {
    const Rank rank(options);
    const auto alone = rank.world->group({options.rank}, "tp");
    for (const Kind kind : kTrialKinds) {
      Trial(*alone, kind, DType::kBF16, {17}, false, 1, rank.memory()).run_and_check();
      EXPECT_EQ(alone->count(kind).sent_bytes, 0);
      EXPECT_EQ(alone->count(kind).received_bytes, 0);
    }
  });
}

TEST_F(NcclRanks, GroupsStartInAnyOrderToEachOther) {
  run(2, [](const WorldOptions& options) {
    const Rank rank(options);
    const auto a = rank.world->group({0, 1}, "a"), b = rank.world->group({0, 1}, "b");
    Trial first(*a, Kind::kAllGather, DType::kF32, {10000}, false, 1, rank.memory());
    Trial second(*b, Kind::kReduceScatter, DType::kF32, {10000}, false, 2, rank.memory());
    options.rank == 0 ? (first.announce(), second.announce())
                      : (second.announce(), first.announce());
    options.rank == 0 ? (first.start(), second.start()) : (second.start(), first.start());
    first.wait();
    second.wait();
    first.check();
    second.check();
  });
}

TEST_F(NcclRanks, NeighboursThatBothSendFirstDoNotLock) {
  run(4, [](const WorldOptions& options) {
    const Rank rank(options);
    const auto group = rank.world->group({0, 1, 2, 3}, "pp");
    const auto own = static_cast<float>(options.rank);
    const Message forward(rank, own), backward(rank, own), behind(rank, -1), ahead(rank, -1);
    const std::vector<Collective> calls = {
        forward.call(Kind::kSend, rank.next()), backward.call(Kind::kSend, rank.previous()),
        behind.call(Kind::kReceive, rank.previous()), ahead.call(Kind::kReceive, rank.next())};
    for (const Collective& call : calls) group->prepare(call);
    for (int round = 0; round < 2; ++round) {
      std::vector<Communicator::Ticket> tickets;
      for (const Collective& call : calls) tickets.push_back(group->start(call));
      for (const auto ticket : tickets) group->wait(ticket);
      behind.expect(rank.previous());
      ahead.expect(rank.next());
    }
    EXPECT_EQ(group->count(Kind::kSend).sent_bytes, 4 * Message::kElements * 4);
    EXPECT_EQ(group->count(Kind::kReceive).received_bytes, 4 * Message::kElements * 4);
  });
}

TEST_F(NcclRanks, MessagesOfAPairKeepTheirOrderBesideCollectives) {
  run(2, [](const WorldOptions& options) {
    const Rank rank(options);
    const Kind kind = options.rank == 0 ? Kind::kSend : Kind::kReceive;
    const auto memory = rank.memory();
    std::vector<int32_t> values(64, -1);
    if (options.rank == 0) std::iota(values.begin(), values.end(), 0);
    char* data = memory->hold(bytes_of(values));
    const auto call = [&](int64_t i) {
      Collective call{.kind = kind, .dtype = DType::kI32, .peer = 1 - options.rank};
      call.parts.push_back({.input = data + 4 * i, .output = data + 4 * i, .elements = 1});
      return call;
    };
    std::vector<Communicator::Ticket> tickets;
    Trial sum(*rank.world, Kind::kAllReduce, DType::kF32, {999}, true, 5, rank.memory());
    sum.announce();
    rank.world->prepare(call(0));
    if (options.rank == 0) sum.start();
    for (int64_t i = 0; i < 64; ++i) tickets.push_back(rank.world->start(call(i)));
    if (options.rank == 1) sum.start();
    sum.wait();
    sum.check();
    for (const auto ticket : tickets) rank.world->wait(ticket);
    std::iota(values.begin(), values.end(), 0);
    EXPECT_EQ(values_of<int32_t>(memory->read(data, 256)), values);
  });
}

TEST_F(NcclRanks, ARankMayLeaveRightAfterItsLastCollective) {
  run(2, [](const WorldOptions& options) {
    for (uint64_t round = 0; round < 5; ++round) {
      WorldOptions fresh = options;
      fresh.rendezvous += "/" + std::to_string(round);
      const Rank rank(fresh);
      Trial trial(*rank.world, Kind::kAllReduce, DType::kF32, {1 << 12}, true, round,
                  rank.memory());
      const Message message(rank, static_cast<float>(options.rank));
      trial.start();
      // Nobody waits for the send, as at the end of a pipeline's last step.
      const auto ticket = rank.world->start(
          message.call(options.rank == 0 ? Kind::kSend : Kind::kReceive, 1 - options.rank));
      if (options.rank == 1) rank.world->wait(ticket);
      trial.wait();
      trial.check();
      if (options.rank == 1) message.expect(0);
    }
  });
}

}  // namespace
}  // namespace skein::comm_test
