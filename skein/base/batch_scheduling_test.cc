#include "skein/base/batch_scheduling.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace skein {
namespace {

TEST(BatchScheduling, HoldsForALifetimeAndForThreadsStartedMeanwhile) {
  const int before = sched_getscheduler(0);
  if (before != SCHED_OTHER && before != SCHED_BATCH) GTEST_SKIP() << "policy " << before;
  int inherited = -1;
  {
    const BatchScheduling outer(BatchScheduling::kComputes);
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
    {
      const BatchScheduling inner(BatchScheduling::kMovesBytes);
      std::thread([&] { inherited = sched_getscheduler(0); }).join();
    }
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  }
  EXPECT_EQ(inherited, SCHED_BATCH);
  EXPECT_EQ(sched_getscheduler(0), before);
}

}  // namespace
}  // namespace skein
