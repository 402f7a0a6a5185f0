#include "skein/launch/host_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "skein/base/error.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class HostLocks : public testing::Test {
 protected:
  void SetUp() override { ::setenv("SKEIN_NODE", "node7", 1); }
  void TearDown() override { ::unsetenv("SKEIN_NODE"); }

  // A supervisor that is killed: nothing of it ends in order. `worker_ms`: how long it outlives it.
  void kill_one(int worker_ms) const {
    const pid_t supervisor = ::fork();
    if (supervisor == 0) {
      const HostLock lock(where_, "");
      if (worker_ms > 0 && ::fork() == 0) ::usleep(static_cast<useconds_t>(worker_ms) * 1000);
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(supervisor, &status, 0), supervisor);
    ASSERT_EQ(status, 0);
  }

  const test::TempFolder folder_;
  const std::string where_ = (folder_ / "rendezvous").string();
};

TEST_F(HostLocks, ANodeOfSlurmHasItsNameThere) {
  ::setenv("SLURMD_NODENAME", "node3", 1);
  EXPECT_THAT(HostLock(where_, "").host(), StartsWith("node7."));
  ::unsetenv("SKEIN_NODE");
  EXPECT_THAT(HostLock(where_, "").host(), StartsWith("node3."));
  ::unsetenv("SLURMD_NODENAME");
}

TEST_F(HostLocks, NoTwoHaveOneNameAndTheNextSpeaksForOneThatWasKilled) {
  std::string before;
  {
    const HostLock first(where_, "");
    before = first.host();
    EXPECT_EQ(first.succeeds(), "");
  }
  {
    const HostLock second(where_, "");
    EXPECT_NE(second.host(), before);
    EXPECT_EQ(second.succeeds(), "");  // the first ended in order
  }
  kill_one(0);
  EXPECT_THAT(HostLock(where_, "").succeeds(), StartsWith("node7."));
  EXPECT_EQ(HostLock(where_, "").succeeds(), "");
}

TEST_F(HostLocks, ProcessesThatLiveKeepTheLock) {
  kill_one(500);  // its worker has the file still
  EXPECT_THAT(HostLock(where_, "").succeeds(), StartsWith("node7."));
}

TEST_F(HostLocks, TwoOnOneMachineNeedTwoNames) {
  const HostLock first(where_, "");
  try {
    const HostLock second(where_, "");
    FAIL() << "it got the lock, too";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBusy);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(first.host()), HasSubstr("SKEIN_NODE")));
  }
  EXPECT_FALSE(fs::exists(where_));
  EXPECT_THAT(HostLock(where_, "Slurm-77-0").host(), StartsWith("node7."));  // another run there
  ::setenv("SKEIN_NODE", "node8", 1);
  EXPECT_THAT(HostLock(where_, "").host(), StartsWith("node8."));
}

TEST_F(HostLocks, ANameIsAName) {
  ::setenv("SKEIN_NODE", "../../etc", 1);
  EXPECT_THROW(HostLock(where_, ""), Error);
}

}  // namespace
}  // namespace skein
