#include "skein/launch/place/meeting_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "skein/base/error.h"
#include "skein/launch/place/rendezvous_root.h"
#include "skein/store/signed_store.h"
#include "skein/supervise/rendezvous_store.h"
#include "tests/error_of.h"
#include "tests/store/store_kinds.h"

namespace skein {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

class MeetingPlaces : public testing::TestWithParam<const char*> {
 protected:
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
  const MeetingPlace first = meeting_place(*root_, "");
  EXPECT_EQ(first.start_id, "start-0001");
  EXPECT_EQ(meeting_place(*root_, "").start_id, "start-0001");
  end(first.store);
  EXPECT_EQ(meeting_place(*root_, "").start_id, "start-0002");
  EXPECT_EQ(meeting_place(*root_, "").start_id, "start-0002");
  EXPECT_EQ(meeting_place(*root_, "Slurm-77-0").start_id, "Slurm-77-0");
}

TEST_P(MeetingPlaces, AStartOfAnEarlierVersionOrThatHasLapsedIsOver) {
  const std::unique_ptr<StoreRoot> ours =
      signed_root(kind_->root(), JobSecret("0123456789abcdef", "ours"));
  kind_->write_raw("start-0003/machines", "generation-00000001.json", "{}");
  root_->open("start-0003/machines");
  EXPECT_EQ(meeting_place(*ours, "").start_id, "start-0004");
}

// One record that cannot be read for a moment (EIO, ESTALE, EACCES, EMFILE) is no start that is
// over: who took it for one met nobody.
TEST(MeetingInAFolder, ARecordThatCannotBeReadIsWaitedFor) {
  const test::TempFolder folder;
  const auto root = [&] {
    return signed_root(folder_root(folder.path()), JobSecret("0123456789abcdef", "ours"));
  };
  const MeetingPlace first = meeting_place(*root(), "");
  const fs::path run = folder / "start-0001/machines/run", aside = folder / "aside";
  fs::rename(run, aside);
  fs::create_symlink("run", run);
  EXPECT_THAT(error_of([&] { meeting_place(*root(), ""); }),
              HasSubstr(run.string() + ": Too many levels of symbolic links"));
  std::thread server([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    fs::rename(aside, run);
  });
  MeetingPlace second;
  when_store_answers(60, [&] { second = meeting_place(*root(), ""); });
  server.join();
  EXPECT_EQ(second.start_id, "start-0001");
  EXPECT_FALSE(fs::exists(folder / "start-0002"));
}

TEST_P(MeetingPlaces, TwoRunsWithOneNameDoNotMeet) {
  const auto of = [&](const char* secret) {
    return signed_root(kind_->root(), JobSecret(secret, "SKEIN_JOB_SECRET"));
  };
  const std::unique_ptr<StoreRoot> ours = of("0123456789abcdef"), theirs = of("fedcba9876543210");
  meeting_place(*ours, "");
  EXPECT_THAT(error_of([&] { meeting_place(*theirs, ""); }),
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
