#include "skein/launch/meeting_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>

#include "skein/base/error.h"
#include "skein/launch/rendezvous_root.h"
#include "skein/store/signed_store.h"
#include "skein/supervise/store.h"
#include "tests/error_of.h"
#include "tests/store/store_kinds.h"

namespace skein {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class MeetingPlaces : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ::setenv("SKEIN_NODE", "node7", 1); }
  void TearDown() override { ::unsetenv("SKEIN_NODE"); }

  static void end(const std::shared_ptr<KeyValueStore>& machines) {
    GenerationRecord last;
    last.number = 1;
    last.verdict = Verdict{0, "finished"};
    shared_store(machines)->create(last);
  }
  const std::unique_ptr<test::StoreKind> kind_ = test::store_kind(GetParam());
  const std::unique_ptr<StoreRoot> root_ = kind_->root();
};
INSTANTIATE_TEST_SUITE_P(Kinds, MeetingPlaces, testing::Values("folder", "etcd"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(MeetingPlaces, StartedByHandTheyJoinTheNewestThatHasNotEnded) {
  std::shared_ptr<KeyValueStore> machines;
  {
    const MeetingPlace first(*root_, "");
    EXPECT_EQ(first.start_id(), "start-0001");
    machines = first.store();
  }
  EXPECT_EQ(MeetingPlace(*root_, "").start_id(), "start-0001");
  end(machines);
  EXPECT_EQ(MeetingPlace(*root_, "").start_id(), "start-0002");
  EXPECT_EQ(MeetingPlace(*root_, "").start_id(), "start-0002");
  EXPECT_EQ(MeetingPlace(*root_, "Slurm-77-0").start_id(), "Slurm-77-0");
}

TEST_P(MeetingPlaces, ANodeOfSlurmHasItsNameThere) {
  ::setenv("SLURMD_NODENAME", "node3", 1);
  EXPECT_THAT(MeetingPlace(*root_, "").host(), StartsWith("node7."));
  ::unsetenv("SKEIN_NODE");
  EXPECT_THAT(MeetingPlace(*root_, "").host(), StartsWith("node3."));
  ::unsetenv("SLURMD_NODENAME");
}

TEST_P(MeetingPlaces, NoTwoHaveOneNameAndTheNextSpeaksForTheOneBefore) {
  std::string before;
  {
    const MeetingPlace first(*root_, "");
    before = first.host();
    EXPECT_THAT(before, StartsWith("node7."));
    EXPECT_EQ(first.succeeds(), "");
  }
  {
    MeetingPlace second(*root_, "");
    EXPECT_NE(second.host(), before);
    EXPECT_EQ(second.succeeds(), before);
    second.leave();
  }
  EXPECT_EQ(MeetingPlace(*root_, "").succeeds(), "");
}

TEST_P(MeetingPlaces, ProcessesThatLiveKeepTheLock) {
  std::optional<MeetingPlace> first(std::in_place, *root_, "");
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::usleep(500'000);
    ::_exit(0);
  }
  first.reset();  // the worker has the file still
  const MeetingPlace second(*root_, "");
  EXPECT_EQ(::waitpid(worker, nullptr, 0), worker);
  EXPECT_THAT(second.succeeds(), StartsWith("node7."));
}

TEST_P(MeetingPlaces, TwoOnOneMachineNeedTwoNames) {
  const MeetingPlace first(*root_, "");
  try {
    const MeetingPlace second(*root_, "");
    FAIL() << "it got the lock, too";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBusy);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(first.host()), HasSubstr("SKEIN_NODE")));
  }
  ::setenv("SKEIN_NODE", "node8", 1);
  EXPECT_THAT(MeetingPlace(*root_, "").host(), StartsWith("node8."));
}

TEST_P(MeetingPlaces, ANameIsAName) {
  ::setenv("SKEIN_NODE", "../../etc", 1);
  EXPECT_THROW(MeetingPlace(*root_, ""), Error);
}

TEST_P(MeetingPlaces, AStartOfAnEarlierVersionOrThatHasLapsedIsOver) {
  const std::unique_ptr<StoreRoot> ours =
      signed_root(kind_->root(), JobSecret("0123456789abcdef", "ours"));
  kind_->write_raw("start-0003/machines", "generation-00000001.json", "{}");
  root_->open("start-0003/machines");
  EXPECT_EQ(MeetingPlace(*ours, "").start_id(), "start-0004");
}

TEST_P(MeetingPlaces, TwoRunsWithOneNameDoNotMeet) {
  const auto of = [&](const char* secret) {
    return signed_root(kind_->root(), JobSecret(secret, "SKEIN_JOB_SECRET"));
  };
  const std::unique_ptr<StoreRoot> ours = of("0123456789abcdef"), theirs = of("fedcba9876543210");
  const MeetingPlace first(*ours, "");
  EXPECT_THAT(error_of([&] { MeetingPlace(*theirs, ""); }),
              AllOf(HasSubstr("start-0001"), HasSubstr("another secret")));
}

// An etcd that comes up after the run does.
TEST(RendezvousRoot, AStoreIsWaitedForAndThatIsSaid) {
  test::EtcdServer server;
  server.stop();
  testing::internal::CaptureStdout();
  std::atomic<int> tries = 0;
  const auto root = store_root(server.address("demo"));
  auto waiting = std::async(std::launch::async, [&] {
    return error_of([&] {
      when_store_answers(60, [&] {
        ++tries;
        tries.notify_all();
        root->open("start-0001");
      });
    });
  });
  tries.wait(0);
  tries.wait(1);
  server.start();
  EXPECT_EQ(waiting.get(), "");
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, AllOf(HasSubstr("waited for up to"), HasSubstr("etcd does not answer")));
  server.stop();
  EXPECT_THAT(error_of([&] { when_store_answers(0, [&] { root->places(); }); }),
              HasSubstr("etcd does not answer"));
}

}  // namespace
}  // namespace skein
