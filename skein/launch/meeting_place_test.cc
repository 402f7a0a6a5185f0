#include "skein/launch/meeting_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "skein/base/error.h"
#include "skein/supervise/store.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::TempFolder;

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class MeetingPlaces : public testing::Test {
 protected:
  void SetUp() override { ::setenv("SKEIN_NODE", "node7", 1); }
  void TearDown() override { ::unsetenv("SKEIN_NODE"); }

  void end(const fs::path& machines) const {
    GenerationRecord last;
    last.number = 1;
    last.verdict = Verdict{0, "finished"};
    folder_store(machines)->create(last);
  }
  TempFolder folder_;
};

TEST_F(MeetingPlaces, StartedByHandTheyJoinTheNewestThatHasNotEnded) {
  fs::path machines;
  {
    const MeetingPlace first(folder_.path(), "");
    EXPECT_EQ(first.start_id(), "start-0001");
    machines = first.folder();
  }
  EXPECT_EQ(MeetingPlace(folder_.path(), "").start_id(), "start-0001");
  end(machines);
  EXPECT_EQ(MeetingPlace(folder_.path(), "").start_id(), "start-0002");
  EXPECT_EQ(MeetingPlace(folder_.path(), "").start_id(), "start-0002");
  EXPECT_EQ(MeetingPlace(folder_.path(), "Slurm-77-0").start_id(), "Slurm-77-0");
}

TEST_F(MeetingPlaces, ANodeOfSlurmHasItsNameThere) {
  ::setenv("SLURMD_NODENAME", "node3", 1);
  EXPECT_THAT(MeetingPlace(folder_.path(), "").host(), StartsWith("node7."));
  ::unsetenv("SKEIN_NODE");
  EXPECT_THAT(MeetingPlace(folder_.path(), "").host(), StartsWith("node3."));
  ::unsetenv("SLURMD_NODENAME");
}

TEST_F(MeetingPlaces, NoTwoHaveOneNameAndTheNextSpeaksForTheOneBefore) {
  std::string before;
  {
    const MeetingPlace first(folder_.path(), "");
    before = first.host();
    EXPECT_THAT(before, StartsWith("node7."));
    EXPECT_EQ(first.succeeds(), "");
  }
  {
    MeetingPlace second(folder_.path(), "");
    EXPECT_NE(second.host(), before);
    EXPECT_EQ(second.succeeds(), before);
    second.leave();
  }
  EXPECT_EQ(MeetingPlace(folder_.path(), "").succeeds(), "");
}

TEST_F(MeetingPlaces, ProcessesThatLiveKeepTheLock) {
  std::optional<MeetingPlace> first(std::in_place, folder_.path(), "");
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::usleep(500'000);
    ::_exit(0);
  }
  first.reset();  // the worker has the file still
  const MeetingPlace second(folder_.path(), "");
  EXPECT_EQ(::waitpid(worker, nullptr, 0), worker);
  EXPECT_THAT(second.succeeds(), StartsWith("node7."));
}

TEST_F(MeetingPlaces, TwoOnOneMachineNeedTwoNames) {
  const MeetingPlace first(folder_.path(), "");
  try {
    const MeetingPlace second(folder_.path(), "");
    FAIL() << "it got the lock, too";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBusy);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(first.host()), HasSubstr("SKEIN_NODE")));
  }
  ::setenv("SKEIN_NODE", "node8", 1);
  EXPECT_THAT(MeetingPlace(folder_.path(), "").host(), StartsWith("node8."));
}

TEST_F(MeetingPlaces, ANameIsAName) {
  ::setenv("SKEIN_NODE", "../../etc", 1);
  EXPECT_THROW(MeetingPlace(folder_.path(), ""), Error);
}

}  // namespace
}  // namespace skein
