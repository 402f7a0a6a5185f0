// Quotas are read from a made-up root. Real ones: scripts/check_environment.sh.
#include "skein/base/machine/cores.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>

#include "tests/temp_folder.h"

namespace skein {
namespace {

class CpuQuotaTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void in_v2(const std::string& group, const std::string& mounted = "/") {
    write("proc/self/mountinfo",
          "24 30 0:22 / /proc rw,nosuid shared:13 - proc proc rw\n35 24 0:30 " + mounted +
              " /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw,nsdelegate\n");
    write("proc/self/cgroup", "0::" + group + "\n");
  }
  void in_v1(const std::string& group, const std::string& mounted = "/") {
    write("proc/self/mountinfo",
          "32 31 0:29 " + mounted + " /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" +
              "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    write("proc/self/cgroup", "8:memory:/elsewhere\n1:cpu,cpuacct:" + group + "\n");
  }
  void v2(const std::string& group, const std::string& text) {
    write("sys/fs/cgroup" + group + "/cpu.max", text);
  }
  void v1(const std::string& group, const std::string& quota, const std::string& period) {
    write("sys/fs/cgroup/cpu" + group + "/cpu.cfs_quota_us", quota);
    write("sys/fs/cgroup/cpu" + group + "/cpu.cfs_period_us", period);
  }
  std::optional<CpuQuota> read() const { return cpu_quota(root_.path()); }
  double cores() const { return read() ? read()->cores : 0; }

  const test::TempFolder root_;
};

TEST_F(CpuQuotaTest, OfAContainer) {
  in_v2("/");
  EXPECT_FALSE(read());
  v2("", "150000 100000\n");
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->cores, 1.5);
  EXPECT_EQ(read()->by, "the control group / (cpu.max)");
  // Its own group is the root of the mount, and /proc has the host's path.
  in_v2("/kubepods/pod7/c1", "/kubepods/pod7/c1");
  EXPECT_EQ(cores(), 1.5);
  in_v2("/of/another/namespace");
  EXPECT_EQ(cores(), 1.5);
}

TEST_F(CpuQuotaTest, TheTightestOfNestedGroupsCounts) {
  in_v2("/slurm/job_7/step_0");
  v2("/slurm/job_7/step_0", "max 100000\n");
  v2("/slurm/job_7", "400000 100000\n");
  v2("/slurm", "1600000 50000\n");
  v2("/slurm/job_8", "1000 100000\n");  // somebody else's
  EXPECT_EQ(cores(), 4);
  EXPECT_EQ(read()->group, "/slurm/job_7");
  v2("/slurm/job_7/step_0", "50000 20000\n");
  EXPECT_EQ(cores(), 2.5);
}

TEST_F(CpuQuotaTest, OfVersionOne) {
  in_v1("/docker/abc");
  v1("/docker/abc", "-1\n", "100000\n");
  EXPECT_FALSE(read());
  v1("/docker", "800000\n", "100000\n");
  EXPECT_EQ(cores(), 8);
  v1("/docker/abc", "400000\n", "100000\n");
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->by, "the control group /docker/abc (cpu.cfs_quota_us)");
  EXPECT_EQ(cores(), 4);
  in_v1("/docker/abc", "/docker/abc");  // seen from inside
  v1("", "150000\n", "100000\n");
  EXPECT_EQ(cores(), 1.5);
}

TEST_F(CpuQuotaTest, WhatIsNoQuotaLimitsNothing) {
  in_v2("/a");
  for (const char* text :
       {"", "\n", "max\n", "max 100000\n", "many 100000\n", "100000\n", "0 1\n", "-5 100000\n",
        "100000 0\n", "100000 x\n", "99999999999999999999999 100000\n"}) {
    v2("/a", text);
    EXPECT_FALSE(read()) << text;
  }
  write("proc/self/mountinfo", "35 24 0:30\n\n - \nx");
  EXPECT_FALSE(read());
  write("proc/self/cgroup", "0:\n::\n");
  EXPECT_FALSE(read());
}

TEST(Cores, AreThoseThatTheQuotaLets) {
  const auto quota = [](double cores) {
    return std::optional(CpuQuota{cores, "/pod", "the control group /pod (cpu.max)"});
  };
  EXPECT_EQ(num_cores(64, std::nullopt), 64);
  EXPECT_EQ(num_cores(64, quota(4)), 4);
  EXPECT_EQ(num_cores(64, quota(1.5)), 2);
  EXPECT_EQ(num_cores(64, quota(0.2)), 1);
  EXPECT_EQ(num_cores(2, quota(4)), 2);
  EXPECT_EQ(num_cores(2, quota(1.5)), 2);
  EXPECT_EQ(cores_text(64, std::nullopt), "64");
  EXPECT_EQ(cores_text(2, quota(4)), "2");
  EXPECT_EQ(cores_text(64, quota(1.5)),
            "2 of 64: the control group /pod (cpu.max) allows the time of 1.5");
}

TEST(Cores, AreThoseThatAThreadMayRunOn) {
  cpu_set_t all, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(num_cores_to_run_on(), CPU_COUNT(&all));
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(num_cores_to_run_on(), 1);
  EXPECT_EQ(num_cores(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(all), &all), 0);
}

}  // namespace
}  // namespace skein
