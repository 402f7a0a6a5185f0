#include "skein/train/start/memory_check.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;

using Ranks = std::vector<std::vector<RankLimit>>;

RankLimit limit(uint64_t id, int64_t needed, int64_t free, int64_t held = 0) {
  return {id, needed * kGigabyte, held * kGigabyte, free * kGigabyte};
}

TEST(ExceededLimit, NothingWhereAllHold) {
  EXPECT_FALSE(exceeded_limit(Ranks{{limit(7, 8, 25)}, {limit(7, 8, 25)}, {limit(7, 8, 25)}}));
  EXPECT_FALSE(exceeded_limit(Ranks{{}, {}}));
}

// Each worker alone would find that its need fits.
TEST(ExceededLimit, WorkersOfANodeAreCountedTogether) {
  const auto verdict = exceeded_limit(
      Ranks{{limit(7, 8, 25)}, {limit(7, 8, 24)}, {limit(7, 8, 25)}, {limit(7, 7, 25)}});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->rank, 0);
  EXPECT_EQ(verdict->ranks, 4);
  EXPECT_EQ(verdict->needed_bytes, 31 * kGigabyte);
  EXPECT_EQ(verdict->available_bytes, 24 * kGigabyte);
}

TEST(ExceededLimit, WhatProcessesHoldAlreadyIsTheirs) {
  EXPECT_FALSE(exceeded_limit(Ranks{{limit(7, 8, 14, 1)}, {limit(7, 8, 14, 1)}}));
  EXPECT_TRUE(exceeded_limit(Ranks{{limit(7, 8, 13, 1)}, {limit(7, 8, 14, 1)}}));
}

TEST(ExceededLimit, OtherNodesHaveOtherMemory) {
  EXPECT_FALSE(exceeded_limit(Ranks{{limit(7, 8, 10)}, {limit(9, 8, 10)}}));
  const auto verdict =
      exceeded_limit(Ranks{{limit(7, 8, 10)}, {limit(9, 8, 10)}, {limit(9, 8, 10)}});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->rank, 1);
  EXPECT_EQ(verdict->ranks, 2);
}

TEST(ExceededLimit, AProcessHasItsOwnAndTheWorstIsSaid) {
  const auto verdict =
      exceeded_limit(Ranks{{limit(7, 8, 15), limit(0, 8, 9)}, {limit(7, 8, 15), limit(0, 8, 4)}});
  ASSERT_TRUE(verdict);  // the machine lacks 1 GB, rank 1's own limit 4 GB
  EXPECT_EQ(verdict->rank, 1);
  EXPECT_EQ(verdict->index, 1u);
  EXPECT_EQ(verdict->ranks, 1);
}

}  // namespace
}  // namespace skein
