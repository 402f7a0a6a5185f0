// Saves that are interrupted: by a kill at every file operation and at random moments, by a lost
// write cache, by errors of the file system, by a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>

#include "skein/base/numbers/philox.h"
#include "tests/checkpoint/checkpoint_test_state.h"

namespace skein {
namespace {

using test::names_in;
using test::SmallState;
using test::steps_in;
using test::TempFolder;
using testing::HasSubstr;

struct Operation {
  std::string name;
  fs::path path;
};

// Runs `body` in a child process; returns how it ended, as waitpid reports it.
template <typename Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (...) {
      ::_exit(99);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// What the crash tests save: step 3, or step 2 again, over checkpoints of steps 1 and 2.
struct Scenario {
  int64_t step;
  bool can_exchange = true;  // whether the file system can exchange two names

  CheckpointWriterOptions options() const { return {.retention = {.keep = 2}, .async = false}; }

  void prepare(const fs::path& dir) const {
    SmallState state;
    CheckpointWriter writer(dir, options(), state.specs());
    for (const int64_t old : {1, 2}) ASSERT_TRUE(state.save(writer, old).ok());
  }
  void save(const fs::path& dir, const FileOps::Hook& hook) const {
    SmallState state;
    CheckpointWriterOptions with_hook = options();
    with_hook.file_hook = [&](std::string_view name, const fs::path& path) {
      hook(name, path);
      if (name == "exchange" && !can_exchange) fail(ErrorCode::kUnsupported, "no exchange");
    };
    CheckpointWriter writer(dir, with_hook, state.specs());
    state.save(writer, step);
  }
  // Every operation of a save, in order.
  std::vector<Operation> record() const {
    const TempFolder folder(TempFolder::Where::kMemory);
    prepare(folder.path());
    std::vector<Operation> operations;
    save(folder.path(), [&](std::string_view name, const fs::path& path) {
      operations.push_back({std::string(name), path.lexically_relative(folder.path())});
    });
    return operations;
  }
};

// After a crash the newest good checkpoint is the complete old one or the complete new one, and a
// process that starts again cleans up and saves.
void expect_survived(const fs::path& dir, int64_t new_step) {
  std::vector<std::string> damaged;
  const auto good = find_newest_good(
      dir, [&](const CheckpointInfo&, const Error& error) { damaged.push_back(error.what()); });
  ASSERT_TRUE(good.has_value());
  EXPECT_TRUE(good->step == 2 || good->step == new_step) << good->step;
  EXPECT_TRUE(damaged.empty()) << damaged[0];
  SmallState state;
  state.expect_saved(good->path, good->step);
  CheckpointWriter writer(dir, {.retention = {.keep = 2}, .async = false}, state.specs());
  ASSERT_TRUE(state.save(writer, 9).ok());
  state.expect_saved(dir / "step-00000009", 9);
  for (const std::string& name : names_in(dir)) EXPECT_TRUE(parse_checkpoint_name(name)) << name;
  EXPECT_EQ(steps_in(dir).size(), 2u);
}

// What a disk may hold after a power cut just before operation `count`: files that were not synced
// are cut in half, and names that were not synced with their folder are gone.
void lose_unsynced(const fs::path& dir, const std::vector<Operation>& operations, size_t count) {
  std::set<fs::path> unsynced;
  for (size_t i = 0; i < count; ++i) {
    const auto& [name, path] = operations[i];
    if (name == "create" || name == "write") unsynced.insert(dir / path);
    if (name == "sync") unsynced.erase(dir / path);
  }
  for (const fs::path& path : unsynced) {
    std::error_code error;
    fs::resize_file(path, fs::file_size(path, error) / 2, error);
  }
}

TEST(CheckpointCrash, SurvivesAKillBeforeEveryFileOperation) {
  for (const Scenario scenario : {Scenario{3}, Scenario{2}, Scenario{2, false}}) {
    const std::vector<Operation> operations = scenario.record();
    ASSERT_GT(operations.size(), 20u);
    for (const bool power_cut : {false, true}) {
      for (size_t kill_at = 0; kill_at < operations.size(); ++kill_at) {
        SCOPED_TRACE(fmt::format("step {}, {} {}: {} {}", scenario.step, kill_at,
                                 operations[kill_at].name, operations[kill_at].path.string(),
                                 power_cut ? "power cut" : "kill"));
        const TempFolder folder(TempFolder::Where::kMemory);
        scenario.prepare(folder.path());
        const int status = in_child([&] {
          size_t next = 0;
          scenario.save(folder.path(), [&](std::string_view, const fs::path&) {
            if (next++ == kill_at) ::raise(SIGKILL);
          });
        });
        ASSERT_TRUE(WIFSIGNALED(status));
        if (power_cut) lose_unsynced(folder.path(), operations, kill_at);
        expect_survived(folder.path(), scenario.step);
      }
    }
  }
}

// A rename may reach the disk before earlier writes, so everything must be synced before it.
TEST(CheckpointCrash, NothingIsUnsyncedWhenTheFolderIsRenamed) {
  std::set<fs::path> unsynced;
  bool folder_synced = false, renamed = false, parent_synced = false;
  for (const auto& [name, path] : Scenario{3}.record()) {
    if (renamed) {
      parent_synced |= name == "sync_folder" && path == ".";
      EXPECT_TRUE(parent_synced || name == "sync_folder") << name << " before the parent is synced";
      continue;
    }
    if (name == "create" || name == "write") unsynced.insert(path);
    if (name == "sync") unsynced.erase(path);
    if (name == "create") folder_synced = false;
    if (name == "sync_folder" && path == "step-00000003.partial") folder_synced = true;
    if (name == "rename") {
      renamed = true;
      EXPECT_EQ(path, "step-00000003.partial");
      EXPECT_TRUE(unsynced.empty());
      EXPECT_TRUE(folder_synced);
    }
  }
  EXPECT_TRUE(parent_synced);
}

TEST(CheckpointCrash, SurvivesKillsAtRandomMoments) {
  const Philox random(7, RandomPurpose::kDataOrder, 0, 0);
  const TempFolder folder;
  Scenario{3}.prepare(folder.path());
  int64_t last_good = 2;
  uint32_t range_us = 40000;  // adapts to the machine's speed: some kills come early, some late
  for (int trial = 0; trial < 60; ++trial) {
    const pid_t child = ::fork();
    if (child == 0) {
      SmallState state(5000);  // 1.2 MB a save
      CheckpointWriter writer(folder.path(), {.retention = {.keep = 2}}, state.specs());
      for (int64_t step = last_good + 1;; ++step) {
        state.set_step(step);
        writer.begin(state.state(), state.views());
      }
    }
    ::usleep(1000 + random.word(trial) % range_us);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::vector<std::string> damaged;
    const auto good = find_newest_good(
        folder.path(), [&](auto&, const Error& error) { damaged.push_back(error.what()); });
    ASSERT_TRUE(good.has_value());
    EXPECT_TRUE(damaged.empty()) << damaged[0];
    EXPECT_GE(good->step, last_good);
    if (good->step > 2) SmallState(5000).expect_saved(good->path, good->step);
    range_us = good->step == last_good ? range_us + range_us / 4 : range_us - range_us / 4;
    last_good = good->step;
  }
  EXPECT_GT(last_good, 2) << "no save was ever finished: the moments are too early";
}

TEST(CheckpointCrash, ReportsAnErrorOfEveryFileOperation) {
  for (const Scenario scenario : {Scenario{3}, Scenario{2}}) {
    const size_t num_operations = scenario.record().size();
    for (size_t fail_at = 0; fail_at < num_operations; ++fail_at) {
      SCOPED_TRACE(fail_at);
      const TempFolder folder(TempFolder::Where::kMemory);
      scenario.prepare(folder.path());
      SmallState state;
      size_t next = 0;
      bool armed = false;
      CheckpointWriterOptions options = scenario.options();
      options.async = true;
      options.file_hook = [&](std::string_view, const fs::path& path) {
        if (armed && next++ == fail_at) {
          fail(ErrorCode::kNoSpace, "cannot write {}: No space left on device (28)", path.string());
        }
      };
      CheckpointWriter writer(folder.path(), options, state.specs());
      armed = true;
      const Result<SavedCheckpoint> result = state.save(writer, scenario.step);
      if (next <= fail_at) continue;  // construction accounts for some of the recorded operations
      if (result.ok()) {
        EXPECT_THAT(Result(result).value().warning, HasSubstr("No space left"));
      } else {
        EXPECT_EQ(result.error().code(), ErrorCode::kNoSpace);
        EXPECT_THAT(result.error().what(), HasSubstr("No space left on device"));
      }
      for (const int64_t step : steps_in(folder.path())) {
        state.expect_saved(folder / checkpoint_name(step), step);
      }
      EXPECT_GE(steps_in(folder.path()).size(), 2u);
      ASSERT_TRUE(state.save(writer, 4).ok()) << "the next save works again";
      state.expect_saved(folder / "step-00000004", 4);
    }
  }
}

// Runs in a child process, with files limited to 64 KiB.
TEST(CheckpointCrash, AFileThatMayNotGrowIsReported) {
  const TempFolder folder;
  Scenario{3}.prepare(folder.path());
  const int status = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{65536, 65536};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    SmallState large(10000);
    CheckpointWriter writer(folder.path(), {.async = true}, large.specs());
    const Result<SavedCheckpoint> result = large.save(writer, 3);
    if (result.ok() || result.error().code() != ErrorCode::kIo) ::_exit(2);
    if (std::string(result.error().what()).find("weights-00000") == std::string::npos) ::_exit(3);
    if (names_in(folder.path()).size() != 2) ::_exit(4);
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_survived(folder.path(), 3);
}

// Runs in a child process with its own file system, where that is allowed.
TEST(CheckpointCrash, AFullDiskIsReportedAndHarmsNothing) {
  const TempFolder folder;
  const int status = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(77);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(77);
    if (::mount("skein", folder.path().c_str(), "tmpfs", 0, "size=512k") != 0) ::_exit(77);
    Scenario{3}.prepare(folder.path());
    {
      SmallState large(10000);
      CheckpointWriter writer(folder.path(), {}, large.specs());
      const Result<SavedCheckpoint> result = large.save(writer, 3);
      if (result.ok() || result.error().code() != ErrorCode::kNoSpace) ::_exit(2);
      if (names_in(folder.path()).size() != 2) ::_exit(3);
    }
    SmallState small;
    CheckpointWriter writer(folder.path(), {}, small.specs());
    if (!small.save(writer, 3).ok()) ::_exit(4);
    if (find_newest_good(folder.path(), {})->step != 3) ::_exit(5);
  });
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace skein
