#include "skein/schedule/collective_seconds.h"

#include <gtest/gtest.h>

#include "skein/base/error.h"

namespace skein {
namespace {

using enum CollectiveKind;

constexpr double kIntra = 8e9, kInter = 1e9, kIntraLatency = 1e-6, kInterLatency = 1e-5;

Hardware eight_a_node() {
  Hardware h;
  h.name = "test";
  h.devices_per_node = 8;
  h.intra_node = {kIntra, kIntraLatency};
  h.inter_node = {kInter, kInterLatency};
  return h;
}

TEST(PlaceGroup, AxesOfAMeshOnNodes) {
  const Hardware h = eight_a_node();
  // pp 2, dp 16, tp 8: tensor parallelism fills a node, data parallelism has one rank on each.
  EXPECT_EQ(place_group(8, 1, 256, h), (GroupPlace{8, 1, 8}));
  EXPECT_EQ(place_group(16, 8, 256, h), (GroupPlace{16, 16, 1}));
  EXPECT_EQ(place_group(2, 128, 256, h), (GroupPlace{2, 2, 1}));
  // tp 2: four ranks of data parallelism on a node.
  EXPECT_EQ(place_group(16, 2, 64, h), (GroupPlace{16, 4, 4}));
  EXPECT_EQ(place_group(256, 1, 256, h), (GroupPlace{256, 32, 8}));
  EXPECT_EQ(place_group(16, 1, 256, h), (GroupPlace{16, 2, 8}));
  EXPECT_EQ(place_group(1, 4, 256, h), (GroupPlace{1, 1, 1}));
}

TEST(PlaceGroup, TheWorstGroupCounts) {
  const Hardware h = eight_a_node();
  // Groups of 6: ranks 6 to 11 lie 2 on one node, 4 on the next; ranks 0 to 5 on one node.
  EXPECT_EQ(place_group(6, 1, 24, h), (GroupPlace{6, 2, 2}));
  EXPECT_EQ(place_group(6, 1, 6, h), (GroupPlace{6, 1, 6}));
  EXPECT_EQ(place_group(3, 2, 6, h), (GroupPlace{3, 1, 3}));
  EXPECT_THROW(place_group(5, 1, 12, h), Error);
  EXPECT_THROW(place_group(0, 1, 12, h), Error);
}

TEST(CollectiveSeconds, LargeMessagesMoveTheTextbookBytes) {
  const Hardware h = eight_a_node();
  const double x = 8e12;  // so large that latency does not matter
  const auto seconds = [&](CollectiveKind pattern, int64_t size, int64_t stride) {
    return collective_seconds(pattern, x, place_group(size, stride, size * stride, h), h);
  };
  const double tolerance = 1;  // of more than a thousand seconds
  for (const CollectiveKind pattern : {kAllGather, kReduceScatter, kAllToAll}) {
    EXPECT_NEAR(seconds(pattern, 8, 1), 7.0 / 8 * x / kIntra, tolerance);
    EXPECT_NEAR(seconds(pattern, 16, 8), 15.0 / 16 * x / kInter, tolerance);
  }
  EXPECT_NEAR(seconds(kAllReduce, 8, 1), 2 * 7.0 / 8 * x / kIntra, tolerance);
  EXPECT_NEAR(seconds(kSend, 2, 8), x / kInter, tolerance);
  EXPECT_NEAR(seconds(kSend, 2, 1), x / kIntra, tolerance);
  EXPECT_NEAR(seconds(kBroadcast, 8, 1), 3 * x / kIntra, tolerance);
  // Over two full nodes a ring's hop between nodes uses 8 links, as fast as one within a node.
  EXPECT_NEAR(seconds(kAllGather, 16, 1), 15.0 / 16 * x / kIntra, tolerance);
  // All blocks at once: half of them leave the node, and each rank has its own link.
  EXPECT_NEAR(seconds(kAllToAll, 16, 1), 8.0 / 16 * x / kInter, tolerance);
}

TEST(CollectiveSeconds, SmallMessagesTakeTheLatencyOfTheirRounds) {
  const Hardware h = eight_a_node();
  const auto seconds = [&](CollectiveKind pattern, int64_t size, int64_t stride) {
    return collective_seconds(pattern, 0, place_group(size, stride, size * stride, h), h);
  };
  EXPECT_DOUBLE_EQ(seconds(kAllGather, 8, 1), 3 * kIntraLatency);
  EXPECT_DOUBLE_EQ(seconds(kAllGather, 2, 1), kIntraLatency);
  EXPECT_DOUBLE_EQ(seconds(kAllGather, 16, 8), 4 * kInterLatency);
  EXPECT_DOUBLE_EQ(seconds(kAllGather, 16, 1), 3 * kIntraLatency + kInterLatency);
  EXPECT_DOUBLE_EQ(seconds(kAllToAll, 16, 1), kInterLatency);
  EXPECT_DOUBLE_EQ(seconds(kAllReduce, 8, 1), 4 * kIntraLatency);
  EXPECT_DOUBLE_EQ(seconds(kBarrier, 6, 1), 3 * kIntraLatency);
  EXPECT_DOUBLE_EQ(seconds(kSend, 2, 1), kIntraLatency);
}

TEST(CollectiveSeconds, OneRankIsFree) {
  for (const CollectiveKind pattern : {kAllGather, kAllReduce, kSend, kBarrier})
    EXPECT_EQ(collective_seconds(pattern, 1e12, {}, Hardware{}), 0);
}

TEST(CollectiveSeconds, MoreBytesOrWorsePlacesNeverTakeLess) {
  const Hardware h = eight_a_node();
  for (const CollectiveKind pattern :
       {kAllGather, kReduceScatter, kAllReduce, kAllToAll, kBroadcast, kSend, kBarrier}) {
    for (const int64_t size : {2, 3, 4, 8, 16, 24, 64}) {
      double last = 0;
      for (double bytes = 1; bytes < 1e11; bytes *= 10) {
        const double near = collective_seconds(pattern, bytes, place_group(size, 1, size, h), h);
        const double far = collective_seconds(pattern, bytes, place_group(size, 8, 8 * size, h), h);
        EXPECT_GE(near, last) << static_cast<int>(pattern) << " " << size;
        EXPECT_GE(far, near) << static_cast<int>(pattern) << " " << size << " " << bytes;
        last = near;
      }
    }
  }
}

TEST(CollectiveSeconds, ALinkThatIsMissingIsNamed) {
  Hardware h = eight_a_node();
  h.inter_node = {};
  EXPECT_GT(collective_seconds(kAllGather, 1e6, place_group(8, 1, 8, h), h), 0);
  try {
    collective_seconds(kAllGather, 1e6, place_group(16, 1, 16, h), h);
    FAIL() << "two nodes without a link";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("[inter_node]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("at most 8 ranks"), std::string::npos);
  }
}

}  // namespace
}  // namespace skein
