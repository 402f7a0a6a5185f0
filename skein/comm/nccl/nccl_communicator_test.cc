#include "skein/comm/nccl/nccl_communicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>

#include "skein/base/clock.h"
#include "skein/base/error.h"
#include "skein/runtime/cuda/cuda_device.h"
#include "tests/comm/rank_threads.h"
#include "tests/comm/trial.h"

namespace skein::comm_test {
namespace {

using Kind = CollectiveKind;
class DeviceMemory : public Memory {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  ~DeviceMemory() override {
    for (const auto& [memory, bytes] : held_) device_.release(memory, bytes);
  }
  char* hold(const Bytes& bytes) override {
    const auto size = static_cast<int64_t>(bytes.size());
    // Never null: an address is what tells a broadcast's root that it has an output.
    void* memory = device_.allocate(std::max<int64_t>(size, 1), "a test");
    held_.emplace_back(memory, size);
    device_.upload(memory, bytes.data(), size);
    return static_cast<char*>(memory);
  }
  Bytes read(const void* at, size_t bytes) override {
    Bytes host(bytes);
    device_.download(host.data(), at, static_cast<int64_t>(bytes));
    return host;
  }

 private:
  Device& device_;
  std::vector<std::pair<void*, int64_t>> held_;
};

// One rank's device and worlds.
struct Rank {
  explicit Rank(const WorldOptions& options, Sums sums = Sums::kCanonical)
      : options(options),
        device(std::make_unique<CudaDevice>(DeviceOptions{.index = options.rank}, KernelTable())),
        host(make_world(options)),
        world(make_nccl_world(
            *host, {.stream = device->stream(), .timeout_s = options.timeout_s, .sums = sums})) {}

  std::unique_ptr<Memory> memory() const { return std::make_unique<DeviceMemory>(*device); }
  int next() const { return (options.rank + 1) % options.size; }
  int previous() const { return (options.rank + options.size - 1) % options.size; }

  WorldOptions options;
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> host;
  std::unique_ptr<Communicator> world;
};

class NcclRanks : public testing::Test {
 protected:
  // In the emulation there are as many devices as a test asks for.
  void run(int size, const std::function<void(const WorldOptions&)>& body) {
    setenv("CUDA_EMULATION_DEVICES", std::to_string(size).c_str(), 1);
    const int devices = num_cuda_devices();
    if (devices >= size) run_rank_threads(size, body);
    unsetenv("CUDA_EMULATION_DEVICES");
    if (devices < size) GTEST_SKIP() << size << " ranks, " << devices << " GPUs";
  }
};

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

// Elements of `value`, on a device.
class Message {
 public:
  static constexpr int64_t kElements = 1 << 16;
  Message(const Rank& rank, float value)
      : memory_(rank.memory()),
        data_(memory_->hold(bytes_of(std::vector<float>(kElements, value)))) {}
  Collective call(Kind kind, int peer) const {
    Collective call{.kind = kind, .peer = peer, .label = "boundary"};
    call.parts.push_back({.input = data_, .output = data_, .elements = kElements});
    return call;
  }
  void expect(int value) const {
    EXPECT_EQ(values_of<float>(memory_->read(data_, kElements * sizeof(float))),
              std::vector<float>(kElements, static_cast<float>(value)));
  }

 private:
  std::unique_ptr<Memory> memory_;
  char* data_;
};

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

// What `action` says when it loses a peer; it must.
template <typename Action>
std::string loss_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was lost";
  return "";
}

void expect_says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
  }
}

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

TEST_F(NcclRanks, ASilentPeerIsLostAtTheDeadlineAndItsCauseTravels) {
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
    EXPECT_LT(seconds_since(start), 10);
    expect_says(text, {"[all-reduce] trial, step 41: one of ranks 1, 2 of 'dp' (world ranks 1, 2)",
                       "did not take part within 0.5 s", "collective_timeout_s"});
    EXPECT_EQ(loss_in_step(rank, *dp, call), text);
    EXPECT_EQ(loss_of([&] { dp->start(call); }), text);
    EXPECT_EQ(loss_of([&] { rank.host->run({}); }), text);
  });
}

TEST_F(NcclRanks, APeerThatEndsIsSeenAtOnce) {
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
    EXPECT_LT(seconds_since(start), 5);
  });
}

TEST_F(NcclRanks, AnErrorInTheMiddleLetsGoAndIsTold) {
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
    EXPECT_LT(seconds_since(start), 5);
  });
}

TEST_F(NcclRanks, APeerThatDoesNotComeToConnectIsNamed) {
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
