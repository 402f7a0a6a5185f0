#include "skein/launch/place/host_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "skein/base/error.h"
#include "tests/error_of.h"
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

  // The one file of node7 there: of a test that has the only lock.
  static fs::path lock_file() {
    for (const auto& entry : fs::directory_iterator(OwnFolder().path())) {
      if (entry.path().filename().string().starts_with("node7-")) return entry.path();
    }
    return {};
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

// The file as somebody else made it, or a version that wrote other text.
TEST_F(HostLocks, NothingIsBelievedButANameOfThisNode) {
  const std::string good = "node7.4711-0123456789abcdef";
  const fs::path path = [&] {
    const HostLock lock(where_, "");
    return lock_file();
  }();
  const auto succeeds = [&](const std::string& text) {
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms(0600));
    return HostLock(where_, "").succeeds();
  };
  EXPECT_EQ(succeeds(good), good);
  for (const std::string text :
       {"node8.4711-0123456789abcdef", "node7.4711-0123456789ABCDEF", "node7.4711-0123456789abcde",
        "node7.-0123456789abcdef", "node7.4711", "node7.4711-0123456789abcdef\n", "node77", ""}) {
    EXPECT_EQ(succeeds(text), "") << text;
  }
}

TEST_F(HostLocks, AFileOfAnotherKindIsRefusedAtOnceByName) {
  const fs::path path = [&] {
    const HostLock lock(where_, "");
    return lock_file();
  }();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string error = test::error_of([&] { HostLock(where_, ""); });
  fs::remove(path);
  EXPECT_THAT(error, AllOf(HasSubstr(path.string() + " is a FIFO of"), HasSubstr("mode 0600")));
  EXPECT_EQ(HostLock(where_, "").succeeds(), "");
}

TEST_F(HostLocks, ItLiesInAFolderOfThisUserAlone) {
  const HostLock lock(where_, "");
  const fs::path folder = lock_file().parent_path();
  EXPECT_EQ(folder.filename(), fmt::format("skein-{}", ::geteuid()));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms(0700));
}

TEST_F(HostLocks, ANameIsAName) {
  ::setenv("SKEIN_NODE", "../../etc", 1);
  EXPECT_THROW(HostLock(where_, ""), Error);
}

}  // namespace
}  // namespace skein
