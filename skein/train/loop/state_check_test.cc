#include "skein/train/loop/state_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "tests/comm/rank_threads.h"

namespace skein {
namespace {

using testing::HasSubstr;

const Mesh kData = Mesh::standard(1, 4, 1, 1);
constexpr unsigned kDp = 1U << 1, kTp = 1U << 3;

std::vector<Hash128> hashes(const std::string& text) {
  std::vector<Hash128> hashes;
  for (const char one : text) hashes.push_back({static_cast<uint64_t>(one), 0});
  return hashes;
}

TEST(Suspects, AreAllButTheMajority) {
  EXPECT_EQ(suspects(kData, kDp, hashes("aaaa")), std::vector<int>());
  EXPECT_EQ(suspects(kData, kDp, hashes("aaba")), std::vector<int>{2});
  EXPECT_EQ(suspects(kData, kDp, hashes("aabb")), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(suspects(kData, kDp, hashes("aabc")), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(suspects(Mesh::standard(1, 2, 1, 1), kDp, hashes("ab")), (std::vector{0, 1}));
}

TEST(Suspects, AreSoughtAmongThoseThatHoldCopies) {
  // Ranks by dp, then tp: 0 and 1 have one dp coordinate, 0 and 2 one tp coordinate.
  const Mesh mesh = Mesh::standard(1, 2, 1, 2);
  EXPECT_EQ(suspects(mesh, kDp, hashes("abab")), std::vector<int>());
  EXPECT_EQ(suspects(mesh, kTp, hashes("abab")), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(suspects(mesh, kTp, hashes("aabb")), std::vector<int>());
  EXPECT_EQ(suspects(mesh, kDp | kTp, hashes("aaab")), std::vector<int>{3});
  EXPECT_EQ(suspects(Mesh::standard(4, 1, 1, 1), kDp, hashes("abcd")), std::vector<int>());
}

// What a rank holds: copies over dp, and a range of its own; each of several pieces.
struct State {
  std::vector<std::byte> weights = std::vector<std::byte>(600'001, std::byte{7});
  std::vector<std::byte> moments = std::vector<std::byte>(300'000);
  explicit State(int rank) { std::fill(moments.begin(), moments.end(), std::byte(rank)); }
  std::vector<CheckedTensor> tensors() const {
    return {{"w", kDp, weights}, {"exp_avg.w", 0, moments}};
  }
};

std::string failure_of(const std::function<void()>& act, ErrorCode expected) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected) << error.what();
    return error.what();
  }
  return "nothing";
}

TEST(StateCheck, CopiesThatDifferAreFoundOnAllRanks) {
  comm_test::run_rank_threads(4, [&](const WorldOptions& options) {
    const auto world = make_world(options);
    State state(options.rank);
    StateCheck check(*world, kData, state.tensors());
    check.vote();
    check.expect_unchanged();
    if (options.rank == 2) state.weights.back() ^= std::byte{1};
    const std::string found = failure_of(
        [&] { check.vote(); }, options.rank == 2 ? ErrorCode::kWrongBits : ErrorCode::kPeerLost);
    EXPECT_THAT(found, HasSubstr("rank 2"));
    EXPECT_GT(check.take_seconds(), 0);
  });
}

TEST(StateCheck, WhatRanksAreToldIsComparedAsWell) {
  comm_test::run_rank_threads(3, [&](const WorldOptions& options) {
    const auto world = make_world(options);
    State state(options.rank);
    StateCheck check(*world, Mesh::standard(3, 1, 1, 1), state.tensors());
    const std::array<double, 2> told = {2.5, options.rank == 1 ? 1.0000001 : 1};
    const std::string found =
        failure_of([&] { check.vote(told); },
                   options.rank == 1 ? ErrorCode::kWrongBits : ErrorCode::kPeerLost);
    EXPECT_THAT(found, HasSubstr("rank 1"));
  });
}

TEST(StateCheck, WhatChangesBetweenUpdatesIsFoundWhereItChanged) {
  comm_test::run_rank_threads(2, [&](const WorldOptions& options) {
    const auto world = make_world(options);
    State state(options.rank);
    StateCheck check(*world, Mesh::standard(1, 2, 1, 1), state.tensors());
    check.vote();
    state.moments[270'000] ^= std::byte{0x80};
    const std::string found = failure_of([&] { check.expect_unchanged(); }, ErrorCode::kWrongBits);
    EXPECT_THAT(found, HasSubstr("bytes 262144 to 299999 of exp_avg.w changed after an update"));
    check.vote();  // an update may change what has no copies
    check.expect_unchanged();
  });
}

}  // namespace
}  // namespace skein
