#include "skein/launch/place/rank_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "skein/base/error.h"

namespace skein {
namespace {

TEST(RankThreads, AProcessHasRanksThatFollowEachOther) {
  const RankInfo process = {.rank = 3, .size = 4, .local_rank = 1, .local_size = 2};
  const std::vector<RankInfo> ranks = ranks_of_process(process, 2);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].rank, 6);
  EXPECT_EQ(ranks[1].rank, 7);
  EXPECT_EQ(ranks[1].size, 8);
  EXPECT_EQ(ranks[1].local_rank, 3);
  EXPECT_EQ(ranks[1].local_size, 4);
}

TEST(RankThreads, SeveralRanksRunAtTheSameTime) {
  std::atomic<int> here = 0;
  const int code = run_ranks(ranks_of_process({}, 3), [&](const RankInfo& rank) {
    ++here;
    while (here < 3) std::this_thread::yield();
    return rank.rank == 0 ? 75 : 0;
  });
  EXPECT_EQ(code, 75);
}

TEST(RankThreads, TheErrorIsThatOfTheRankThatFailed) {
  const auto body = [](const RankInfo& rank) -> int {
    if (rank.rank == 2) fail(ErrorCode::kNoSpace, "the disk is full");
    fail(ErrorCode::kPeerLost, "rank 2 was lost");
  };
  try {
    run_ranks(ranks_of_process({}, 4), body);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoSpace);
  }
}

}  // namespace
}  // namespace skein
