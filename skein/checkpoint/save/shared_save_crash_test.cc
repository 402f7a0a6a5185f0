// Saves of several ranks that are interrupted: one rank is killed, or fails, at any of its file
// operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <new>

#include "tests/checkpoint/checkpoint_ranks_state.h"

namespace skein {
namespace {

using test::names_in;
using test::Rank;
using test::Ranks;
using test::RanksState;
using test::steps_in;
using test::TempFolder;
using testing::HasSubstr;

// Saves step 3, or step 2 again, over checkpoints of steps 1 and 2.
struct Scenario {
  int num_ranks;
  int64_t step;
  bool can_exchange = true;  // whether the file system can exchange two names
  bool indexed = false;      // whether shards are in index.bin

  RanksState state() const { return RanksState(Mesh::standard(1, num_ranks, 1, 1), indexed); }
  // Saved once and copied, because the tests need it hundreds of times.
  void prepare(const fs::path& dir) const {
    static std::map<std::pair<int, bool>, TempFolder> prepared;
    const auto [entry, is_new] =
        prepared.try_emplace({num_ranks, indexed}, TempFolder::Where::kMemory);
    if (is_new) {
      const RanksState state = this->state();
      Ranks ranks(state, entry->second.path());
      for (const int64_t old : {1, 2}) ranks.expect_save(old);
    }
    fs::copy(entry->second.path(), dir, fs::copy_options::recursive);
  }
  void refuse_exchange(std::string_view operation) const {
    if (operation == "exchange" && !can_exchange) fail(ErrorCode::kUnsupported, "no exchange");
  }
};

// After a crash the newest good checkpoint is the complete old one or the complete new one; a
// restart cleans up and saves.
void expect_survived(const Scenario& scenario, const fs::path& dir, bool and_saves) {
  const RanksState state = scenario.state();
  std::vector<std::string> damaged;
  const auto good = find_newest_good(
      dir, [&](const CheckpointInfo&, const Error& error) { damaged.push_back(error.what()); });
  ASSERT_TRUE(good.has_value());
  EXPECT_TRUE(good->step == 2 || good->step == scenario.step) << good->step;
  EXPECT_TRUE(damaged.empty()) << damaged[0];
  state.expect_saved(good->path, good->step);
  Ranks ranks(state, dir, [](int, CheckpointWriterOptions& options) {
    options.save_id = "again";
    options.retention.keep = 2;
  });
  for (const std::string& name : names_in(dir)) EXPECT_TRUE(parse_checkpoint_name(name)) << name;
  if (!and_saves) return;
  ranks.expect_save(9);
  state.expect_saved(dir / "step-00000009", 9);
  EXPECT_EQ(steps_in(dir).size(), 2u);
}

// Shared by the processes of a run. The parent acts as the launcher and ends the run if a rank
// dies.
struct Run {
  std::atomic<bool> constructed{false};  // set by rank 0
  std::atomic<bool> ending{false};

  static Run* create() {
    void* memory =
        ::mmap(nullptr, sizeof(Run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return new (memory) Run;
  }
};

constexpr int kSaved = 10, kNotSaved = 11;

// The process of a rank: saves, and dies at file operation `kill_at` of the save; -1: never.
[[noreturn]] void run_rank(const Scenario& scenario, const fs::path& dir, int rank, int kill_at,
                           Run& run) {
  while (rank != 0 && !run.constructed) ::usleep(100);
  const RanksState state = scenario.state();
  int next = -1;
  CheckpointWriterOptions options;
  options.async = false;
  options.should_abort = [&run] { return run.ending.load(); };
  options.file_hook = [&](std::string_view operation, const fs::path&) {
    if (next >= 0 && next++ == kill_at) ::raise(SIGKILL);
    scenario.refuse_exchange(operation);
  };
  Rank self(state, dir, rank, options);
  if (rank == 0) run.constructed = true;
  next = 0;
  self.begin(scenario.step);
  ::_exit(self.finish().ok() ? kSaved : kNotSaved);
}

// Returns how each rank's process ended, as waitpid reports it.
std::vector<int> run_ranks(const Scenario& scenario, const fs::path& dir, int killed_rank,
                           int kill_at) {
  Run* run = Run::create();
  std::vector<pid_t> children;
  for (int rank = 0; rank < scenario.num_ranks; ++rank) {
    children.push_back(::fork());
    if (children.back() == 0) {
      try {
        run_rank(scenario, dir, rank, rank == killed_rank ? kill_at : -1, *run);
      } catch (...) {
        ::_exit(99);
      }
    }
  }
  std::vector<int> ends(children.size());
  for (size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    const pid_t child = ::wait(&status);
    ends[std::find(children.begin(), children.end(), child) - children.begin()] = status;
    if (WIFSIGNALED(status)) run->ending = true;
  }
  ::munmap(run, sizeof(Run));
  return ends;
}

TEST(SharedSaveCrash, SurvivesAKillOfAnyRankBeforeEveryFileOperation) {
  for (const Scenario& scenario :
       {Scenario{3, 3}, Scenario{2, 2}, Scenario{2, 2, false}, Scenario{3, 3, true, true}}) {
    for (int killed = 0; killed < scenario.num_ranks; ++killed) {
      if (killed > 0 && !scenario.can_exchange) continue;  // only rank 0 exchanges
      int num_kills = 0;
      for (bool was_killed = true; was_killed; ++num_kills) {
        SCOPED_TRACE(fmt::format("{} ranks, step {}: rank {} at {}", scenario.num_ranks,
                                 scenario.step, killed, num_kills));
        const TempFolder folder(TempFolder::Where::kMemory);
        scenario.prepare(folder.path());
        const std::vector<int> ends = run_ranks(scenario, folder.path(), killed, num_kills);
        was_killed = WIFSIGNALED(ends[killed]);
        // The surviving ranks agree with each other and with the disk.
        int num_saved = 0, num_alive = 0;
        for (const int end : ends) {
          if (!WIFEXITED(end)) continue;
          ASSERT_TRUE(WEXITSTATUS(end) == kSaved || WEXITSTATUS(end) == kNotSaved);
          ++num_alive;
          num_saved += WEXITSTATUS(end) == kSaved;
        }
        EXPECT_TRUE(num_saved == 0 || num_saved == num_alive) << num_saved;
        EXPECT_TRUE(was_killed || num_saved == scenario.num_ranks);
        if (scenario.step == 3) {
          EXPECT_EQ(fs::exists(folder / "step-00000003"), num_saved > 0);
        }
        expect_survived(scenario, folder.path(), num_kills % 4 == 0);
      }
      EXPECT_GT(num_kills, 12);
    }
  }
}

// Operation `fail_at` of one rank fails, once or from then on; all ranks report the same outcome.
void expect_agreement(const Scenario& scenario, int failing, int fail_at, bool for_good,
                      bool& happened) {
  const TempFolder folder(TempFolder::Where::kMemory);
  scenario.prepare(folder.path());
  const RanksState state = scenario.state();
  std::atomic<int> next = -1;
  Ranks ranks(state, folder.path(), [&](int rank, CheckpointWriterOptions& options) {
    options.deadline_s = for_good ? 0.05 : 60;
    options.file_hook = [&, rank](std::string_view operation, const fs::path& path) {
      scenario.refuse_exchange(operation);
      if (rank != failing || next < 0) return;
      const int now = next++;
      if (now == fail_at || (for_good && now > fail_at)) {
        fail(ErrorCode::kNoSpace, "cannot write {}: No space left on device (28)", path.string());
      }
    };
  });
  next = 0;
  const auto results = ranks.save(scenario.step);
  happened = next > fail_at;
  next = -1;
  const bool saved = results[0].ok();
  for (const auto& result : results) EXPECT_EQ(result.ok(), saved);
  if (saved && happened) {
    EXPECT_THAT(Result(results[0]).value().warning, HasSubstr("No space left"));
  }
  if (!saved && !for_good) {
    EXPECT_EQ(results[0].error().code(), ErrorCode::kNoSpace);
    EXPECT_THAT(results[0].error().what(), HasSubstr(fmt::format("rank {}: cannot", failing)));
  }
  for (const int64_t step : steps_in(folder.path())) {
    state.expect_saved(folder / checkpoint_name(step), step);
  }
  EXPECT_EQ(steps_in(folder.path()).size(), saved && scenario.step == 3 ? 3u : 2u);
  ranks.expect_save(4);
  state.expect_saved(folder / "step-00000004", 4);
  for (const std::string& name : names_in(folder.path())) {
    EXPECT_TRUE(parse_checkpoint_name(name)) << name;
  }
}

TEST(SharedSaveCrash, AllRanksAgreeOnAnErrorOfEveryFileOperation) {
  for (const Scenario& scenario :
       {Scenario{3, 3}, Scenario{2, 2}, Scenario{2, 2, false}, Scenario{3, 3, true, true}}) {
    for (int failing = 0; failing < scenario.num_ranks; ++failing) {
      int fail_at = 0;
      for (bool happened = true; happened; ++fail_at) {
        SCOPED_TRACE(fmt::format("{} ranks, step {}: rank {} at {}", scenario.num_ranks,
                                 scenario.step, failing, fail_at));
        expect_agreement(scenario, failing, fail_at, false, happened);
      }
      EXPECT_GT(fail_at, 12);
    }
  }
}

TEST(SharedSaveCrash, ARankThatCanDoNothingAnyMoreIsGivenUp) {
  for (const int failing : {0, 1}) {
    bool happened = true;
    for (int fail_at = 0; happened && fail_at < 20; fail_at += 3) {
      SCOPED_TRACE(fmt::format("rank {} from {} on", failing, fail_at));
      expect_agreement({2, 3, true, failing == 0}, failing, fail_at, true, happened);
    }
  }
}

}  // namespace
}  // namespace skein
