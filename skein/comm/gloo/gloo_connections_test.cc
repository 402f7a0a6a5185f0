// Which ranks connect, how many messages a collective takes, and what a start among thousands
// costs.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "skein/comm/gloo/tree_communicator.h"
#include "tests/comm/ranks.h"
#include "tests/comm/trial.h"

namespace skein::comm_test {
namespace {

using Kind = CollectiveKind;
TEST(GlooConnections, ATreeOfAnyShapeDoesWhatAllToAllDoes) {
  for (const int fan_out : {1, 2, 3, 8}) {
    run_ranks(7, [fan_out](const WorldOptions& options) {
      const auto connections = std::make_shared<GlooWorld>(options);
      TreeCommunicator world(connections, fan_out);
      EXPECT_EQ(world.size(), 7);
      uint64_t seed = 0;  // chooses the root of a broadcast
      for (const Kind kind :
           {Kind::kAllGather, Kind::kAllReduce, Kind::kBroadcast, Kind::kBarrier}) {
        for (int i = 0; i < 8; ++i) {
          Trial trial(world, kind, kTrialDTypes[i % 4], {3, 0, 70, 1001}, i % 2 == 0, ++seed);
          trial.start();
          trial.wait();
          trial.check();
        }
        EXPECT_EQ(world.count(kind).calls, 8);
      }
      EXPECT_LE(connections->num_connections(), fan_out + 1);
      Trial(world, Kind::kAllToAll, DType::kF32, {70}, false, 1).run_and_check();
      EXPECT_EQ(connections->num_connections(), 6);
    });
  }
}

TEST(GlooConnections, OnlyWithThoseThatARankWorksWith) {
  run_ranks(8, [](const WorldOptions& options) {
    const auto connections = std::make_shared<GlooWorld>(options);
    TreeCommunicator world(connections, 2);
    world.run({});
    const int r = options.rank;
    // Two stages of four data ranks.
    const int first = r / 4 * 4;
    const auto dp = world.group({first, first + 1, first + 2, first + 3}, "dp");
    const auto pp = world.group({r % 4, r % 4 + 4}, "pp");
    const int before = connections->num_connections();
    dp->check({});
    EXPECT_EQ(connections->num_connections(), before);
    Trial(*dp, Kind::kReduceScatter, DType::kF32, {1000}, false, 1).run_and_check();
    int32_t word = r;
    Collective message{.kind = r < 4 ? Kind::kSend : Kind::kReceive, .dtype = DType::kI32};
    message.peer = r < 4 ? 1 : 0;
    message.parts.push_back({.input = &word, .output = &word, .elements = 1});
    pp->run(message);
    EXPECT_EQ(word, r % 4);
    int needed = 0;
    for (int other = 0; other < 8; ++other) {
      const bool tree = (r > 0 && (r - 1) / 2 == other) || (other > 0 && (other - 1) / 2 == r);
      const bool group = other != r && (other / 4 == r / 4 || other % 4 == r % 4);
      if (tree || group) ++needed;
      EXPECT_EQ(connections->is_connected(other), tree || group) << r << " and " << other;
    }
    EXPECT_EQ(connections->num_connections(), needed);
    EXPECT_LT(needed, 7);
  });
}

// Each rank begins with another neighbour; announced peers are connected first.
TEST(GlooConnections, ARingThatBeginsWithSendsDoesNotWaitForItself) {
  run_ranks(4, [](const WorldOptions& options) {
    const auto connections = std::make_shared<GlooWorld>(options);
    GlooCommunicator ring(connections, {0, 1, 2, 3}, "ring");
    int32_t out = options.rank, in = -1;
    Collective send{.kind = Kind::kSend, .dtype = DType::kI32, .peer = (options.rank + 1) % 4};
    Collective receive{
        .kind = Kind::kReceive, .dtype = DType::kI32, .peer = (options.rank + 3) % 4};
    send.parts.push_back({.input = &out, .elements = 1});
    receive.parts.push_back({.output = &in, .elements = 1});
    ring.prepare(send);
    ring.prepare(receive);
    EXPECT_EQ(connections->num_connections(), 0);
    const auto sent = ring.start(send), received = ring.start(receive);
    ring.wait(sent);
    ring.wait(received);
    EXPECT_EQ(in, (options.rank + 3) % 4);
    EXPECT_EQ(connections->num_connections(), 2);
  });
}

TEST(GlooConnections, ARankThatDoesNotConnectIsLostAtTheDeadline) {
  run_ranks(2, [](WorldOptions options) {
    options.timeout_s = 0.3;
    const auto connections = std::make_shared<GlooWorld>(options);
    GlooCommunicator group(connections, {0, 1}, "dp");
    if (options.rank == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      return;
    }
    try {
      group.run({.label = "first"});
      ADD_FAILURE() << "nobody was there";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
      EXPECT_NE(std::string(error.what()).find("rank 1 of 'dp'"), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("did not take part within"), std::string::npos);
    }
  });
}

TEST(GlooConnections, ADeathEndsATreeForAll) {
  Ranks ranks(7, [](const WorldOptions& options) {
    TreeCommunicator world(std::make_shared<GlooWorld>(options), 2);
    world.run({});
    if (options.rank == 5) raise(SIGKILL);
    const auto start = Clock::now();
    try {
      for (;;) world.run({.label = "next"});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    }
    EXPECT_LT(seconds_since(start), kAtOnceS);
  });
  for (const int rank : {0, 1, 2, 3, 4, 6}) EXPECT_TRUE(ranks.passed(rank)) << rank;
}

// A bucket of 40 parameters takes one message per peer and phase, not 40; the bytes stay the same.
TEST(GlooConnections, ABucketIsOneMessageAPeer) {
  run_ranks(4, [](const WorldOptions& options) {
    const auto connections = std::make_shared<GlooWorld>(options);
    GlooCommunicator dp(connections, {0, 1, 2, 3}, "dp");
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < 40; ++i) sizes.push_back(1 + i * 37 % 4000);
    const auto messages_of = [&](Kind kind, const std::vector<int64_t>& elements) {
      const int64_t before = dp.num_messages();
      Trial(dp, kind, DType::kF32, elements, true, 5).run_and_check();
      return dp.num_messages() - before;
    };
    EXPECT_EQ(messages_of(Kind::kReduceScatter, sizes), 3);
    EXPECT_EQ(messages_of(Kind::kAllGather, sizes), 3);
    EXPECT_EQ(messages_of(Kind::kAllReduce, sizes), 6);
    sizes.push_back(200'000);  // a share that is worth its own message, without a copy
    EXPECT_GT(messages_of(Kind::kReduceScatter, sizes), 3 * 30);
  });
}

std::string fresh_folder() {
  std::string folder = (std::filesystem::temp_directory_path() / "skein-world-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  return folder;
}

// 4,096 ranks, of which only some run: the files of the others are made up. bench/start_bench.cc
// measures the time.
TEST(GlooConnections, AStartAmongThousandsReadsAFewSmallFiles) {
  constexpr int kRanks = 4096;
  const std::string folder = fresh_folder();
  const auto options = [&](int rank) {
    return WorldOptions{
        .rank = rank, .size = kRanks, .rendezvous = folder, .start_timeout_s = kDeadlineS};
  };
  // What one rank publishes, taken from a world of one rank.
  const std::string alone = folder + "/alone";
  Rendezvous({.rank = 0, .size = 1, .rendezvous = alone}).arrive();
  std::string said;
  std::getline(std::ifstream(alone + "/arrived-00000"), said);
  said = "4096" + said.substr(1);
  for (int rank = 1; rank < kRanks - 1; ++rank) {
    std::ofstream(folder + fmt::format("/arrived-{:05d}", rank)) << said;
  }
  std::thread last([&] {  // finds no table, waits, and is told by rank 0
    Rendezvous rendezvous(options(kRanks - 1));
    EXPECT_TRUE(rendezvous.arrive());
  });
  Rendezvous first(options(0));
  EXPECT_TRUE(first.arrive());
  last.join();
  EXPECT_LT(std::filesystem::file_size(folder + "/table"), 100u);

  // The peers of 512 data ranks, 8 tensor ranks and two pipeline neighbours.
  const std::vector<char> address(136, 'a');
  for (int peer = 1; peer <= 521; ++peer)
    Rendezvous(options(peer)).publish_addresses({{0, address}});
  for (int peer = 1; peer <= 521; ++peer) EXPECT_EQ(first.address_of(peer), address);
  EXPECT_FALSE(first.address_of(600).has_value());
  std::filesystem::remove_all(folder);
}

// Without /proc nobody knows on which machine a rank is: two of them are not on one, whose loopback
// they would share.
TEST(GlooConnections, RanksWhoseMachineIsUnknownAreNotOnOne) {
  for (const char* host : {"", "d1ce"}) {
    const std::string folder = fresh_folder();
    const auto options = [&](int rank) {
      return WorldOptions{
          .rank = rank, .size = 2, .rendezvous = folder, .start_timeout_s = kDeadlineS};
    };
    bool last_is_near = false;
    std::thread last([&] { last_is_near = Rendezvous(options(1), host).arrive(); });
    EXPECT_EQ(Rendezvous(options(0), host).arrive(), *host != '\0') << host;
    last.join();
    EXPECT_EQ(last_is_near, *host != '\0');
    std::filesystem::remove_all(folder);
  }
}

// Two nodes of 4 ranks, where each rank has to reach all others and every address is published. A
// node does not look up its own ranks, and of the other node it opens 4 files, not 4 x 4.
TEST(GlooConnections, OneRankOfANodeReadsForAll) {
  const auto folder = fresh_folder();
  std::vector<std::unique_ptr<Rendezvous>> ranks;
  std::vector<std::thread> starts;
  const auto name = [](int from, int to) {
    const std::string text = fmt::format("{} reaches {}", from, to);
    return std::vector<char>(text.begin(), text.end());
  };
  const auto node_of = [](int rank) { return rank % 2 == 0 ? "even" : "odd"; };
  for (int rank = 0; rank < 8; ++rank) {
    const WorldOptions options{.rank = rank, .size = 8, .rendezvous = folder};
    ranks.push_back(std::make_unique<Rendezvous>(options, node_of(rank)));
  }
  for (auto& rank : ranks) starts.emplace_back([&] { EXPECT_FALSE(rank->arrive()); });
  for (std::thread& start : starts) start.join();
  for (int rank = 0; rank < 8; ++rank) {
    std::map<int, std::vector<char>> addresses;
    for (int peer = 0; peer < 8; ++peer) addresses[peer] = name(peer, rank);
    ranks[rank]->publish_addresses(addresses);
  }
  for (const int first : {0, 1}) {
    int64_t num_looks = 0;
    for (int rank = first; rank < 8; rank += 2) {
      for (int peer = 0; peer < 8; ++peer) {
        EXPECT_EQ(ranks[rank]->address_of(peer), name(rank, peer)) << rank << " " << peer;
      }
      num_looks += ranks[rank]->num_looks();
    }
    EXPECT_EQ(num_looks, 4);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace skein::comm_test
