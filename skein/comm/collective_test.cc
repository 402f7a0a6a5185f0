#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "skein/comm/shares.h"

namespace skein {
namespace {

Collective one(CollectiveKind kind, int64_t elements, int64_t share, DType dtype = DType::kF32) {
  Collective collective{.kind = kind, .dtype = dtype};
  collective.parts.push_back({.elements = elements, .share = share});
  return collective;
}

int64_t sent(const Collective& collective, int rank, int size) {
  return collective_sent_bytes(collective, rank, size);
}

TEST(Collective, SharesEndWithTheTensor) {
  const Collective gather = one(CollectiveKind::kAllGather, 10, 3);
  const CollectivePart& part = gather.parts[0];
  EXPECT_EQ(share_of(gather, part, 4, 1).begin, 12);
  EXPECT_EQ(share_of(gather, part, 4, 1).bytes, 12);
  EXPECT_EQ(share_of(gather, part, 4, 3).begin, 36);
  EXPECT_EQ(share_of(gather, part, 4, 3).bytes, 4);
  EXPECT_EQ(share_of(gather, part, 6, 5).begin, 40);
  EXPECT_EQ(share_of(gather, part, 6, 5).bytes, 0);
  const Collective reduce = one(CollectiveKind::kAllReduce, 10, 0);
  EXPECT_EQ(share_of(reduce, reduce.parts[0], 4, 3).bytes, 4);
}

TEST(Collective, SendsTheTextbookMinimum) {
  const int64_t x = 1200 * 4;
  EXPECT_EQ(sent(one(CollectiveKind::kAllGather, 1200, 300), 2, 4), 3 * x / 4);
  EXPECT_EQ(sent(one(CollectiveKind::kReduceScatter, 1200, 300), 2, 4), 3 * x / 4);
  EXPECT_EQ(sent(one(CollectiveKind::kAllToAll, 1200, 300), 2, 4), 3 * x / 4);
  EXPECT_EQ(sent(one(CollectiveKind::kAllReduce, 1200, 0), 2, 4), 2 * 3 * x / 4);
  EXPECT_EQ(sent(one(CollectiveKind::kSend, 1200, 0), 2, 4), x);
  EXPECT_EQ(sent(one(CollectiveKind::kReceive, 1200, 0), 2, 4), 0);
  EXPECT_EQ(sent(one(CollectiveKind::kBroadcast, 1200, 0), 0, 4), 3 * x);
  EXPECT_EQ(sent(one(CollectiveKind::kBroadcast, 1200, 0), 2, 4), 0);
  EXPECT_EQ(sent(one(CollectiveKind::kBarrier, 0, 0), 2, 4), 0);
  EXPECT_EQ(sent(one(CollectiveKind::kAllGather, 1200, 300, DType::kBF16), 2, 4), 3 * x / 8);
}

TEST(Collective, CountsTheRaggedEndExactly) {
  // Shares of 3, 3, 3, 1 elements.
  EXPECT_EQ(sent(one(CollectiveKind::kAllGather, 10, 3), 0, 4), 3 * 3 * 4);
  EXPECT_EQ(sent(one(CollectiveKind::kAllGather, 10, 3), 3, 4), 3 * 1 * 4);
  EXPECT_EQ(sent(one(CollectiveKind::kReduceScatter, 10, 3), 0, 4), 7 * 4);
  EXPECT_EQ(sent(one(CollectiveKind::kReduceScatter, 10, 3), 3, 4), 9 * 4);
  EXPECT_EQ(sent(one(CollectiveKind::kAllReduce, 10, 0), 3, 4), 9 * 4 + 3 * 4);
  int64_t all = 0;
  for (int rank = 0; rank < 4; ++rank) all += sent(one(CollectiveKind::kAllReduce, 10, 0), rank, 4);
  EXPECT_EQ(all, 2 * 3 * 10 * 4);
}

TEST(Collective, ScratchHoldsTheOthersTerms) {
  EXPECT_EQ(collective_scratch_bytes(one(CollectiveKind::kReduceScatter, 100, 25), 4), 3 * 128);
  EXPECT_EQ(collective_scratch_bytes(one(CollectiveKind::kAllReduce, 100, 0), 4), 3 * 128);
  EXPECT_EQ(collective_scratch_bytes(one(CollectiveKind::kAllReduce, 100, 0), 1), 0);
  EXPECT_EQ(collective_scratch_bytes(one(CollectiveKind::kAllGather, 100, 25), 4), 0);
}

TEST(Collective, RefusesMalformedCalls) {
  const auto message = [](const Collective& collective) {
    const auto result = try_run([&] {
      check_collective(collective, 1, 4);
      return 0;
    });
    return result.ok() ? "" : std::string(result.error().what());
  };
  EXPECT_EQ(message(one(CollectiveKind::kAllGather, 12, 3)), "");
  EXPECT_NE(message(one(CollectiveKind::kAllGather, 13, 3)).find("do not cover 13"),
            std::string::npos);
  EXPECT_NE(message(one(CollectiveKind::kAllToAll, 10, 3)).find("are not 10"), std::string::npos);
  EXPECT_NE(message(one(CollectiveKind::kAllReduce, 12, 0)).find("scratch"), std::string::npos);
  Collective send = one(CollectiveKind::kSend, 12, 0);
  send.peer = 1;
  EXPECT_NE(message(send).find("names peer 1"), std::string::npos);
  send.peer = 4;
  EXPECT_NE(message(send).find("names peer 4"), std::string::npos);
}

}  // namespace
}  // namespace skein
