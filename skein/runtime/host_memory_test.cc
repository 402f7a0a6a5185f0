// Limits are read from a made-up root, so only the last test depends on the machine.
#include "skein/runtime/host_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;

class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() {
    std::string name = testing::TempDir() + "/host_memory_XXXXXX";
    root_ = mkdtemp(name.data());
    write("proc/sys/kernel/random/boot_id", "d1ce\n");
    write("proc/meminfo",
          "MemTotal:       32000000 kB\nMemFree:  900 kB\nMemAvailable: 25000000 kB\n"
          "CommitLimit:    20000000 kB\nCommitted_AS:    4000000 kB\n");
  }
  ~HostMemoryTest() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // A group of cgroup v2.
  void group(const std::string& path, const std::string& max, int64_t used,
             const std::string& stat = "") {
    write("sys/fs/cgroup" + path + "/memory.max", max + "\n");
    write("sys/fs/cgroup" + path + "/memory.current", fmt::format("{}\n", used));
    write("sys/fs/cgroup" + path + "/memory.stat", stat);
  }
  void mount_v2(const std::string& group = "/") {
    write("proc/self/mountinfo",
          "24 30 0:22 / /proc rw,nosuid shared:13 - proc proc rw\n"
          "35 24 0:30 " +
              group + " /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw\n");
  }
  HostMemory read() const { return read_host_memory(root_); }
  int64_t least() const { return read().tightest()->free_bytes; }

  fs::path root_;
};

TEST_F(HostMemoryTest, TheMachineSaysWhatIsAvailable) {
  const HostMemory memory = read();
  ASSERT_EQ(memory.limits.size(), 1u);  // CommitLimit counts only with overcommit_memory = 2
  EXPECT_EQ(memory.limits[0].total_bytes, 32'768'000'000);
  EXPECT_EQ(memory.limits[0].free_bytes, 25'600'000'000);
  EXPECT_NE(memory.limits[0].id.find("d1ce"), std::string::npos);
}

TEST_F(HostMemoryTest, StrictOvercommitIsALimit) {
  write("proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(least(), int64_t{16'000'000} * 1024);
}

TEST_F(HostMemoryTest, TheSmallestGroupOnThePathCounts) {
  mount_v2();
  write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  group("/slurm/job_7/step_0", "max", kGigabyte);
  group("/slurm/job_7", "8000000000", 3 * kGigabyte);
  group("/slurm", "20000000000", 4 * kGigabyte);
  group("/slurm/job_8", "1000", 900);  // somebody else's
  const HostMemory memory = read();
  EXPECT_EQ(memory.limits.size(), 3u);
  EXPECT_EQ(memory.tightest()->free_bytes, 5 * kGigabyte);
  EXPECT_EQ(memory.tightest()->by, "the control group /slurm/job_7 (memory.max, of 8.00 GB)");
  EXPECT_FALSE(memory.tightest()->of_addresses);
}

TEST_F(HostMemoryTest, PageCacheOfAGroupIsFree) {
  mount_v2();
  write("proc/self/cgroup", "0::/a\n");
  group("/a", "8000000000", 7 * kGigabyte,
        "anon 1000000000\nfile 5000000000\nshmem 1000000000\ninactive_file 1000000000\n"
        "active_file 2500000000\nslab_reclaimable 500000000\n");
  EXPECT_EQ(least(), 5 * kGigabyte);
}

TEST_F(HostMemoryTest, MemoryHighIsALimit) {
  mount_v2();
  write("proc/self/cgroup", "0::/a\n");
  group("/a", "8000000000", kGigabyte);
  write("sys/fs/cgroup/a/memory.high", "6000000000\n");
  EXPECT_EQ(least(), 5 * kGigabyte);
}

TEST_F(HostMemoryTest, AGroupThatIsOverItsLimitLeavesNothing) {
  mount_v2();
  write("proc/self/cgroup", "0::/a\n");
  group("/a", "1000000000", 2 * kGigabyte);
  EXPECT_EQ(least(), 0);
}

TEST_F(HostMemoryTest, AContainerSeesItsOwnGroupAsTheRoot) {
  // Both with the host's path of the group and with a cgroup namespace.
  for (const auto& [mounted, own] :
       {std::pair{"/docker/7f", "/docker/7f"}, std::pair{"/", "/"},
        std::pair{"/docker/7f", "/docker/7f/inner"}, std::pair{"/", "/../other"}}) {
    SCOPED_TRACE(own);
    mount_v2(mounted);
    write("proc/self/cgroup", fmt::format("0::{}\n", own));
    group("", "4000000000", kGigabyte);
    EXPECT_EQ(least(), 3 * kGigabyte);
  }
}

TEST_F(HostMemoryTest, Version1) {
  write("proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "5:cpu:/elsewhere\n4:hugetlb,memory:/job/task\n0::/\n");
  const std::string at = "sys/fs/cgroup/memory/job";
  write(at + "/task/memory.limit_in_bytes", "9223372036854771712\n");
  write(at + "/task/memory.usage_in_bytes", "5\n");
  write(at + "/memory.limit_in_bytes", "6000000000\n");
  write(at + "/memory.usage_in_bytes", "4000000000\n");
  write(at + "/memory.stat",
        "inactive_file 7\ntotal_inactive_file 1000000000\ntotal_active_file 0\n");
  const HostMemory memory = read();
  EXPECT_EQ(memory.limits.size(), 2u);
  EXPECT_EQ(memory.tightest()->free_bytes, 3 * kGigabyte);
  EXPECT_NE(memory.tightest()->by.find("/job (memory.limit_in_bytes, of 6.00 GB)"),
            std::string::npos);
}

TEST_F(HostMemoryTest, LimitsOfTheProcess) {
  write("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             unlimited            unlimited            bytes     \n"
        "Max address space         8000000000           unlimited            bytes     \n");
  write("proc/self/status", "VmPeak:  3000000 kB\nVmSize:  1000000 kB\nRssAnon:   5000 kB\n");
  const HostMemory memory = read();
  EXPECT_EQ(memory.own_bytes, 5'120'000);
  EXPECT_EQ(memory.tightest()->free_bytes, 8 * kGigabyte - 1'024'000'000);
  EXPECT_TRUE(memory.tightest()->of_addresses);
  EXPECT_TRUE(memory.tightest()->id.empty());
  write("proc/self/limits", "Max data size             2000000000  4000000000           bytes\n");
  write("proc/self/status", "VmData:  500000 kB\n");
  EXPECT_EQ(least(), 2 * kGigabyte - 512'000'000);
}

TEST_F(HostMemoryTest, GroupsAreToldApartAndKnownAgain) {
  mount_v2();
  group("/a", "8000000000", 0);
  group("/b", "8000000000", 0);
  const auto id = [&](const char* own) {
    write("proc/self/cgroup", own);
    return read().tightest()->id;
  };
  EXPECT_NE(id("0::/a\n"), id("0::/b\n"));
  EXPECT_EQ(id("0::/a\n"), id("0::/a\n"));
  mount_v2("/a");  // the same folder at another mount point is the same group
  EXPECT_FALSE(id("0::/a\n").empty());
}

TEST_F(HostMemoryTest, WhatIsMissingOrStrangeLimitsNothing) {
  fs::remove_all(root_);
  EXPECT_EQ(read().tightest(), nullptr);
  write("proc/meminfo", "MemAvailable: plenty\n");
  write("proc/self/mountinfo", "35 24\n- cgroup2\n35 24 0:30 / /sys/fs/cgroup rw - cgroup2\n\n");
  write("proc/self/cgroup", "\n:\n0:\n0::\n");
  EXPECT_EQ(read().tightest(), nullptr);
}

TEST(HostMemory, IsRefusedByTheSumAndNamesTheLimit) {
  const MemoryLimit limit = *read_host_memory().tightest();
  EXPECT_GT(limit.free_bytes, 0);
  EXPECT_NO_THROW(require_host_memory(1, "a byte"));
  try {
    require_host_memory(limit.total_bytes + 1, "the model");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoSpace);
    EXPECT_NE(std::string(error.what()).find("the model needs"), std::string::npos);
  }
}

}  // namespace
}  // namespace skein
