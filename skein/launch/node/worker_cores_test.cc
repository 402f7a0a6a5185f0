#include "skein/launch/node/worker_cores.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

using Cores = std::vector<int>;

TEST(WorkerCores, EveryWorkerHasItsOwn) {
  const std::vector<int> cores = {2, 3, 5, 6, 7};
  EXPECT_EQ(cores_of_worker(cores, 0, 2), Cores({2, 3}));
  EXPECT_EQ(cores_of_worker(cores, 1, 2), Cores({5, 6, 7}));
  EXPECT_EQ(cores_of_worker(cores, 4, 5), Cores({7}));
  EXPECT_EQ(cores_of_worker(cores, 0, 6), Cores());
}

TEST(WorkerCores, AreBoundForALifetime) {
  const std::vector<int> before = usable_cores();
  ASSERT_FALSE(before.empty());
  {
    const BoundToCores bound({before.back()});
    EXPECT_EQ(usable_cores(), Cores({before.back()}));
  }
  EXPECT_EQ(usable_cores(), before);
  {
    const BoundToCores nowhere({});
    EXPECT_EQ(usable_cores(), before);
  }
}

}  // namespace
}  // namespace skein
