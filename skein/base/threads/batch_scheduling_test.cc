#include "skein/base/threads/batch_scheduling.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace skein {
namespace {

TEST(BatchScheduling, HoldsForALifetimeAndForThreadsStartedMeanwhile) {
  const int before = sched_getscheduler(0);
  // Another policy is somebody's deliberate choice and stays.
  const int meanwhile = before == SCHED_OTHER ? SCHED_BATCH : before;
  int inherited = -1;
  {
    const BatchScheduling outer(BatchScheduling::kComputes);
    EXPECT_EQ(sched_getscheduler(0), meanwhile);
    {
      const BatchScheduling inner(BatchScheduling::kMovesBytes);
      std::thread([&] { inherited = sched_getscheduler(0); }).join();
    }
    EXPECT_EQ(sched_getscheduler(0), meanwhile);
  }
  EXPECT_EQ(inherited, meanwhile);
  EXPECT_EQ(sched_getscheduler(0), before);
}

}  // namespace
}  // namespace skein
