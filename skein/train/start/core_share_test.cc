#include "skein/train/start/core_share.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/temp_folder.h"

namespace skein {
namespace {

CoreUse worker(const std::string& cores, int num_cores, int threads) {
  return {.machine = "a", .cores = cores, .num_cores = num_cores, .threads = threads};
}

TEST(CoreShare, AThreadWithACoreHasAllOfIt) {
  const CoreUse first = worker("0,1,", 2, 2), second = worker("2,3,", 2, 2);
  EXPECT_EQ(core_share({first, second}, first), 1);
  EXPECT_EQ(core_share({worker("0,1,", 2, 1)}, worker("0,1,", 2, 1)), 1);
}

TEST(CoreShare, WorkersThatMayRunOnTheSameCoresShareThem) {
  const CoreUse one = worker("0,1,", 2, 1);
  EXPECT_EQ(core_share({one, one, one, one}, one), 0.5);
  CoreUse elsewhere = one;
  elsewhere.machine = "b";
  EXPECT_EQ(core_share({one, one, elsewhere, elsewhere}, one), 1);
  EXPECT_EQ(core_share({worker("0,1,", 2, 6)}, worker("0,1,", 2, 6)), 1.0 / 3);
}

TEST(CoreShare, WorkersUnderOneLimitShareIt) {
  CoreUse one = worker("0,1,2,3,", 4, 2);
  one.limit = "/pod";
  one.limit_cores = 1.5;
  EXPECT_EQ(core_share({one}, one), 0.75);
  EXPECT_EQ(core_share({one, one}, one), 0.375);
}

TEST(CoreShare, ReadsTheTightestLimitOfTheGroupsAbove) {
  const test::TempFolder root;
  const auto write = [&](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  EXPECT_EQ(core_use(2, root / "nothing").limit, "");
  write("proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/pod/container\n");
  write("sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(core_use(2, root.path()).limit, "");
  write("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(core_use(2, root.path()).limit, "/pod");
  EXPECT_EQ(core_use(2, root.path()).limit_cores, 1.5);
  // A path of the host's, of which a namespace shows the end alone.
  write("proc/self/cgroup", "0::/elsewhere\n");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(core_use(2, root.path()).limit_cores, 0.5);
  write("sys/fs/cgroup/cpu.max", "many 100000\n");
  EXPECT_EQ(core_use(2, root.path()).limit, "");
}

}  // namespace
}  // namespace skein
