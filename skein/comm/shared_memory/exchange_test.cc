// Ranks of one host: that they share memory, and what happens to it when something goes wrong.
#include "skein/comm/shared_memory/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <fstream>
#include <random>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "skein/base/text/log.h"
#include "skein/comm/gloo/gloo_communicator.h"
#include "tests/comm/rank_threads.h"
#include "tests/comm/ranks.h"
#include "tests/comm/trial.h"
#include "tests/error_of.h"

namespace skein::comm_test {
namespace {

using Kind = CollectiveKind;
using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
  return ranks;
}

// A group of all ranks, and what connects them.
struct Group {
  explicit Group(const WorldOptions& options)
      : world(std::make_shared<GlooWorld>(options)), all(world, all_ranks(options.size), "all") {
    world->connect(all_ranks(options.size));
  }
  std::shared_ptr<GlooWorld> world;
  GlooCommunicator all;
};

Collective message(Kind kind, int peer, std::vector<int32_t>& data) {
  Collective call{.kind = kind, .dtype = DType::kI32, .peer = peer, .label = "boundary"};
  call.parts.push_back({.input = data.data(), .output = data.data(), .elements = std::ssize(data)});
  return call;
}

// process_vm_readv of this process fails from now on, as a container's filter makes it fail.
void deny_reading() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {.len = std::size(program), .filter = program};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST(Exchange, RanksOfAHostShareMemoryUnlessTheyAreToldNotTo) {
  for (const char* wanted : {"on", "off"}) {
    setenv("SKEIN_SHARED_MEMORY", wanted, 1);
    run_ranks(3, [&](const WorldOptions& options) {
      Group group(options);
      for (int peer = 0; peer < 3; ++peer) {
        const bool expected = peer != options.rank && std::string(wanted) == "on";
        EXPECT_EQ(group.world->shares_memory(peer), expected) << wanted << " " << peer;
      }
      Trial(group.all, Kind::kAllReduce, DType::kF32, {70001}, true, 1).run_and_check();
    });
  }
  unsetenv("SKEIN_SHARED_MEMORY");
}

TEST(Exchange, WithoutASecretNoMemoryIsShared) {
  run_ranks(2, [](WorldOptions options) {
    options.secret = nullptr;
    Group group(options);
    EXPECT_FALSE(group.world->shares_memory(1 - options.rank));
    Trial(group.all, Kind::kAllReduce, DType::kF32, {1000}, true, 1).run_and_check();
  });
}

// Rank 1 may read nobody; 0 and 2 share memory all the same.
TEST(Exchange, WhereTheSystemDeniesItMessagesGoOverTheNetworkAndItIsSaidOnce) {
  Ranks ranks(3, [](const WorldOptions& options) {
    const std::string log = options.rendezvous + fmt::format("/log-{}", options.rank);
    log::start(log);
    if (options.rank == 1) deny_reading();
    Group group(options);
    for (int peer = 0; peer < 3; ++peer) {
      EXPECT_EQ(group.world->shares_memory(peer), peer + options.rank == 2 && peer != 1) << peer;
    }
    Trial(group.all, Kind::kAllReduce, DType::kF32, {70001}, true, 1).run_and_check();
    std::ifstream file(log);
    const std::string said(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_THAT(said, HasSubstr("no shared memory with rank"));
    EXPECT_THAT(said, HasSubstr(options.rank == 1 ? "Operation not permitted"
                                                  : "it cannot read this rank's memory"));
  });
  ranks.expect_passed();
}

// Far more messages than a ring has room for, in both directions, before anyone receives.
TEST(Exchange, ARingThatOverflowsLosesNothingAndLocksNobody) {
  run_ranks(2, [](const WorldOptions& options) {
    Group group(options);
    ASSERT_TRUE(group.world->shares_memory(1 - options.rank));
    constexpr int kMessages = 20 * Mailbox::kLaneEntries;
    std::vector<std::vector<int32_t>> out, in(kMessages, std::vector<int32_t>(3, -1));
    for (int i = 0; i < kMessages; ++i) out.push_back({options.rank, i, -i});
    std::vector<Communicator::Ticket> tickets;
    for (auto& data : out) {
      tickets.push_back(group.all.start(message(Kind::kSend, 1 - options.rank, data)));
    }
    if (options.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (auto& data : in) {
      tickets.push_back(group.all.start(message(Kind::kReceive, 1 - options.rank, data)));
    }
    for (const auto ticket : tickets) group.all.wait(ticket);
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(in[i], (std::vector<int32_t>{1 - options.rank, i, -i}));
    }
  });
}

// Rank 1 waits in start() for rank 2, which waits for rank 0, which waits until rank 1 has its
// message.
TEST(Exchange, ARankThatWaitsForAConnectionTakesItsMessages) {
  over_each_transport([] {
    run_ranks(3, [](WorldOptions options) {
      options.timeout_s = 5;
      const auto world = std::make_shared<GlooWorld>(options);
      GlooCommunicator all(world, {0, 1, 2}, "all");
      const int rank = options.rank;
      if (rank < 2) world->connect({1 - rank});
      std::vector<int32_t> first(1000, rank), second(1000, rank);
      if (rank == 0) {
        all.run(message(Kind::kSend, 1, first));
        all.run(message(Kind::kSend, 2, second));
      } else if (rank == 1) {
        const auto received = all.start(message(Kind::kReceive, 0, first));
        all.run(message(Kind::kSend, 2, second));
        all.wait(received);
        EXPECT_THAT(first, testing::Each(0));
      } else {
        all.run(message(Kind::kReceive, 0, first));
        all.run(message(Kind::kReceive, 1, second));
        EXPECT_THAT(first, testing::Each(0));
        EXPECT_THAT(second, testing::Each(1));
      }
    });
  });
}

TEST(Exchange, RanksThatDisagreeAreToldWhatCameAndReadNothing) {
  run_ranks(2, [](WorldOptions options) {
    options.timeout_s = options.rank == 0 ? 0.5 : 20;
    Group group(options);
    std::vector<int32_t> data(options.rank == 0 ? 100 : 200, 7 + options.rank);
    const bool receives = options.rank == 0;
    const std::string problem = error_of([&] {
      group.all.run(message(receives ? Kind::kReceive : Kind::kSend, 1 - options.rank, data));
    });
    EXPECT_THAT(problem, AllOf(HasSubstr("rank 1 of 'all'"), HasSubstr("but in something else"),
                               HasSubstr("sent [send] in i32, a message of 800 bytes"),
                               HasSubstr("expects [send] in i32, a message of 400 bytes")));
    EXPECT_THAT(data, testing::Each(7 + options.rank));
  });
}

TEST(Exchange, AKilledPeerIsNoticedLongBeforeTheDeadline) {
  for (const Kind kind : {Kind::kReceive, Kind::kSend, Kind::kBarrier}) {
    Ranks ranks(2, [&](const WorldOptions& options) {
      Group group(options);
      group.all.run({});
      if (options.rank == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the other sleeps by then
        raise(SIGKILL);
      }
      std::vector<int32_t> data(1000);
      const auto start = Clock::now();
      const std::string problem = error_of(
          [&] { group.all.run(kind == Kind::kBarrier ? Collective{} : message(kind, 1, data)); });
      EXPECT_LT(seconds_since(start), kAtOnceS);
      EXPECT_THAT(problem, AllOf(HasSubstr("rank 1 of 'all'"), HasSubstr("process ended")));
    });
    EXPECT_TRUE(ranks.passed(0)) << collective_name(kind);
  }
}

// Rank 1 ends the world in the middle and writes over its memory: rank 0 gets what was sent, or an
// error.
TEST(Exchange, WhoEndsTheWorldMayUseItsMemoryAtOnce) {
  for (int round = 0; round < 6; ++round) {
    run_ranks(2, [&](const WorldOptions& options) {
      Group group(options);
      std::vector<int32_t> data(16 << 20, options.rank == 1 ? 7 : 0);
      group.all.run({});
      if (options.rank == 1) {
        group.all.start(message(Kind::kSend, 0, data));
        std::this_thread::sleep_for(std::chrono::milliseconds(2 * round));
        group.all.end("enough");
        std::fill(data.begin(), data.end(), 9);
        return;
      }
      const std::string problem =
          error_of([&] { group.all.run(message(Kind::kReceive, 1, data)); });
      if (problem.empty()) {
        EXPECT_EQ(std::count(data.begin(), data.end(), 7), std::ssize(data));
      } else {
        EXPECT_EQ(problem, "enough");
      }
    });
  }
}

// What a rank does is drawn from a seed that all share; each outcome is compared with the sums'
// definition, so the transports agree bit for bit.
void random_collectives(const WorldOptions& options, uint64_t seed) {
  Group group(options);
  std::mt19937_64 common(seed), own(seed * 100 + static_cast<uint64_t>(options.rank));
  std::vector<std::unique_ptr<Communicator>> groups;
  groups.push_back(group.all.group(all_ranks(options.size), "again"));
  std::vector<int> same_parity;
  for (int rank = options.rank % 2; rank < options.size; rank += 2) same_parity.push_back(rank);
  groups.push_back(group.all.group(same_parity, "parity"));
  for (int round = 0; round < 12; ++round) {
    std::vector<std::unique_ptr<Trial>> trials;
    for (uint64_t i = 0, count = 1 + common() % 8; i < count; ++i) {
      Communicator& in = common() % 3 == 0 ? *groups[1] : *groups[0];
      const Kind kind = kTrialKinds[common() % std::size(kTrialKinds)];
      const DType dtype = kTrialDTypes[common() % std::size(kTrialDTypes)];
      std::vector<int64_t> sizes(1 + common() % 3);
      for (int64_t& size : sizes)
        size = static_cast<int64_t>(common() % (common() % 2 ? 50 : 90000));
      const bool in_place = common() % 2 == 0;
      trials.push_back(std::make_unique<Trial>(in, kind, dtype, sizes, in_place, common() % 1000));
      trials.back()->start();
      if (own() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 3000));
    }
    std::shuffle(trials.begin(), trials.end(), common);
    for (const auto& trial : trials) trial->wait();
    for (const auto& trial : trials) trial->check();
  }
}

TEST(Exchange, RandomCollectivesGiveTheSameBitsOverEachTransport) {
  over_each_transport([] {
    for (const uint64_t seed : {1, 2, 3}) {
      run_ranks(4, [&](const WorldOptions& options) { random_collectives(options, seed); });
    }
  });
}

// Ranks and, in each, groups are threads of one process: for the thread sanitizer, too.
TEST(Exchange, GroupsOfOneRankMayBeUsedByDifferentThreads) {
  run_rank_threads(2, [](const WorldOptions& options) {
    Group group(options);
    EXPECT_TRUE(group.world->shares_memory(1 - options.rank));
    std::vector<std::thread> threads;
    for (const char* name : {"a", "b", "c"}) {
      threads.emplace_back([&, own = std::shared_ptr(group.all.group({0, 1}, name))] {
        for (uint64_t i = 0; i < 40; ++i) {
          Trial(*own, kTrialKinds[i % 6], kTrialDTypes[i % 4], {37, 5000}, i % 3 == 0, i)
              .run_and_check();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace
}  // namespace skein::comm_test
