#include "skein/launch/node/stop_requests.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

using Asks = StopRequests::Asks;

TEST(StopRequests, ASecondInterruptEndsAtOnceUnlessItIsTheFirstOneAgain) {
  StopRequests stops;
  EXPECT_EQ(stops.hear(SIGINT, 5'000), Asks::kStop);
  EXPECT_EQ(stops.hear(SIGINT, 5'999), Asks::kNothing);
  EXPECT_EQ(stops.hear(SIGINT, 6'000), Asks::kEndAtOnce);
  EXPECT_TRUE(stops.any());
  EXPECT_TRUE(stops.is_interrupted());
}

TEST(StopRequests, OtherSignalsAskToStopEachTime) {
  StopRequests stops;
  EXPECT_FALSE(stops.any());
  EXPECT_EQ(stops.hear(SIGTERM, 1), Asks::kStop);
  EXPECT_EQ(stops.hear(SIGTERM, 2), Asks::kStop);
  EXPECT_TRUE(stops.any());
  EXPECT_FALSE(stops.is_interrupted());
  EXPECT_EQ(stops.hear(SIGINT, 3), Asks::kStop);
}

}  // namespace
}  // namespace skein
