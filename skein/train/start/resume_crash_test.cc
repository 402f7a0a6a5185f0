// Starts after a crash at any moment of a save, with the trainer's own sequence: lock,
// choose_start, writer. Nothing else prepares the folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "skein/train/start/resume.h"
#include "tests/checkpoint/checkpoint_ranks_state.h"

namespace skein {
namespace {

using test::names_in;
using test::RanksState;
using test::SmallState;
using test::steps_in;
using test::TempFolder;

// The save during which the process dies.
struct Scenario {
  const char* name;
  bool goes_back;  // on a timeline that began from step 1 of another, which has steps 2 and 3
  int64_t step;    // saved over steps 1 and 2
  bool can_exchange = true;

  std::string resume(const fs::path& dir) const {
    return goes_back ? (dir / checkpoint_name(1)).string() : "auto";
  }
  CheckpointWriterOptions options() const { return {.retention = {.keep = 2}, .async = false}; }

  void prepare(const fs::path& dir) const {
    if (goes_back) start_and_save(dir, "auto", {1, 2, 3}, {.retention = {.keep = 0}});
    start_and_save(dir, resume(dir), {goes_back ? 2 : 1, 2}, options());
  }
  static void start_and_save(const fs::path& dir, const std::string& resume,
                             const std::vector<int64_t>& steps, CheckpointWriterOptions options) {
    const RunLock lock = lock_checkpoints(dir.string(), "run");
    const StartingPoint start = choose_start(lock, dir, resume, {});
    SmallState state;
    state.set_timeline(start.timeline);
    options.async = false;
    CheckpointWriter writer(dir, options, state.specs());
    for (const int64_t step : steps) ASSERT_TRUE(state.save(writer, step).ok()) << step;
  }
  // Begins a save and dies at its file operation `kill_at`.
  void save(const fs::path& dir, int kill_at) const {
    const RunLock lock = lock_checkpoints(dir.string(), "run");
    const StartingPoint start = choose_start(lock, dir, resume(dir), {});
    SmallState state;
    state.set_timeline(start.timeline);
    int next = -1;
    CheckpointWriterOptions with_hook = options();
    with_hook.file_hook = [&](std::string_view operation, const fs::path&) {
      if (next >= 0 && next++ == kill_at) ::raise(SIGKILL);
      if (operation == "exchange" && !can_exchange) fail(ErrorCode::kUnsupported, "no exchange");
    };
    CheckpointWriter writer(dir, with_hook, state.specs());
    next = 0;
    if (!state.save(writer, step).ok()) ::_exit(98);
  }
};

template <typename Body>
int in_child(const Body& body) {
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

void expect_goes_on(const Scenario& scenario, const fs::path& dir, const Timeline& timeline) {
  const RunLock lock = lock_checkpoints(dir.string(), "run");
  const auto report = [](const CheckpointInfo& info, const Error& why) {
    ADD_FAILURE() << info.path << ": " << why.what();
  };
  for (const std::string& resume : {scenario.resume(dir), std::string("auto")}) {
    const StartingPoint start = choose_start(lock, dir, resume, report);
    EXPECT_EQ(start.timeline, timeline);
    ASSERT_NE(start.checkpoint, "") << "begins anew";
    const int64_t step =
        parse_checkpoint_name(fs::path(start.checkpoint).filename().string()).value();
    EXPECT_TRUE(step == 2 || step == scenario.step) << step;
    SmallState state;
    state.set_timeline(timeline);
    state.expect_saved(start.checkpoint, step);
  }
  SmallState state;
  state.set_timeline(timeline);
  CheckpointWriter writer(dir, scenario.options(), state.specs());
  ASSERT_TRUE(state.save(writer, 9).ok());
  EXPECT_EQ(choose_start(lock, dir, "auto", report).checkpoint, dir / checkpoint_name(9));
  for (const std::string& name : names_in(dir)) {
    EXPECT_TRUE(name == ".lock" || parse_checkpoint_name(name)) << name;
  }
  if (scenario.goes_back) {
    EXPECT_TRUE(fs::exists(dir / checkpoint_name(1)));  // the parent of its timeline
  }
}

TEST(ResumeCrash, GoesOnAfterAKillBeforeEveryFileOperation) {
  const Scenario scenarios[] = {{"a new step", false, 3},
                                {"a step again", false, 2},
                                {"a step again, two renames", false, 2, false},
                                {"over a timeline that was left", true, 3},
                                {"over it, two renames", true, 3, false}};
  for (const Scenario& scenario : scenarios) {
    int kill_at = 0;
    for (bool was_killed = true; was_killed; ++kill_at) {
      SCOPED_TRACE(fmt::format("{}: {}", scenario.name, kill_at));
      const TempFolder folder(TempFolder::Where::kMemory);
      scenario.prepare(folder.path());
      const Timeline timeline = read_timeline(folder / checkpoint_name(2));
      const int status = in_child([&] { scenario.save(folder.path(), kill_at); });
      was_killed = WIFSIGNALED(status);
      EXPECT_TRUE(was_killed || status == 0) << status;
      expect_goes_on(scenario, folder.path(), timeline);
      if (HasFailure()) return;
    }
    EXPECT_GT(kill_at, 15);
  }
}

// With several ranks any of them may die; only rank 0 cleans up.
TEST(ResumeCrash, GoesOnAfterAKillOfARank) {
  const RanksState ranks(Mesh::standard(1, 2, 1, 1));
  for (const bool can_exchange : {true, false}) {
    int kill_at = 0;
    for (bool was_killed = true; was_killed; ++kill_at) {
      SCOPED_TRACE(fmt::format("{} {}", can_exchange, kill_at));
      const TempFolder folder(TempFolder::Where::kMemory);
      test::Ranks(ranks, folder.path()).expect_save(2);
      const int status = in_child([&] {
        int next = -1;
        test::Ranks all(ranks, folder.path(), [&](int rank, CheckpointWriterOptions& options) {
          options.save_id = "second";
          options.file_hook = [&, rank](std::string_view operation, const fs::path&) {
            if (rank == 0 && next >= 0 && next++ == kill_at) ::raise(SIGKILL);
            if (operation == "exchange" && !can_exchange) fail(ErrorCode::kUnsupported, "none");
          };
        });
        next = 0;
        all.save(2);
        ::_exit(0);
      });
      was_killed = WIFSIGNALED(status);
      const RunLock lock = lock_checkpoints(folder.path().string(), "run");
      const StartingPoint start = choose_start(lock, folder.path(), "auto", {});
      ASSERT_EQ(start.checkpoint, folder / checkpoint_name(2));
      ranks.expect_saved(start.checkpoint, 2);
      EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{".lock", checkpoint_name(2)}));
    }
    EXPECT_GT(kill_at, 12);
  }
}

}  // namespace
}  // namespace skein
