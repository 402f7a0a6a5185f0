// Files that may grow no longer, as on a full disk: training continues, what was not saved is told,
// and what was saved before stays good.
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

TEST(FullDisk, WhileSaving) {
  for (const char* async : {"true", "false"}) {
    SCOPED_TRACE(async);
    const std::string name = std::string("full_") + async;
    const Overrides base = {"checkpoint.every_steps=2", std::string("checkpoint.async=") + async};
    const auto with_steps = [&](int64_t steps) {
      Overrides result = base;
      result.push_back(fmt::format("run.steps={}", steps));
      return result;
    };
    job().trained(name, with_steps(2));
    // The optimizer's file has more, the logs less.
    const Outcome outcome = run_skein(job().arguments("train", name, with_steps(8)), 500'000);
    expect_refused(outcome, 1, {"optimizer-00000", "File too large", "step 8 was not saved"});
    EXPECT_NE(outcome.err.find("training continues"), std::string::npos) << outcome.err;
    EXPECT_EQ(read_curve(job().run(name)).rbegin()->first, 8);
    std::vector<bool> fatal;
    for (const OrderedJson& event : read_json_lines(job().run(name) / "events.jsonl")) {
      if (event.at("event") == "failure") fatal.push_back(event.value("fatal", false));
    }
    EXPECT_EQ(fatal, (std::vector<bool>{false, false, false, true}));  // three saves, and the end
    expect_checkpoints_good(job().run(name));
    EXPECT_FALSE(fs::exists(job().checkpoint(name, 4)));
    EXPECT_FALSE(fs::exists(job().checkpoint(name, 8).string() + ".partial"));
    const std::string before = read_curve(job().run(name)).at(8);
    job().trained(name, with_steps(8));
    EXPECT_TRUE(fs::exists(job().checkpoint(name, 8) / "manifest.json"));
    EXPECT_EQ(read_curve(job().run(name)).at(8), before);
  }
}

// Storage of two workers, where nothing can be saved from when it is taken away to when it is back.
class StorageOfWorkers {
 public:
  explicit StorageOfWorkers(const std::string& name) : run_(job().run(name)) {}
  void take_away() {
    fs::rename(run_ / "checkpoints", run_ / "aside");
    fs::create_symlink(run_ / "nowhere" / "checkpoints", run_ / "checkpoints");
  }
  void bring_back() {
    fs::remove(run_ / "checkpoints");
    fs::rename(run_ / "aside", run_ / "checkpoints");
  }
  int64_t num_steps() const {
    return static_cast<int64_t>(read_json_lines(run_ / "metrics.jsonl").size());
  }
  int64_t num_generations() const {
    int64_t count = 0;
    for (const OrderedJson& event : read_json_lines(run_ / "events.jsonl")) {
      count += event.at("event") == "generation" ? 1 : 0;
    }
    return count;
  }

 private:
  fs::path run_;
};

TEST(FullDisk, WorkersKeepInMemoryWhatTheEndCouldNotSave) {
  const Overrides two = {"launch.workers=2", "checkpoint.every_steps=2",
                         "checkpoint.memory_every_steps=1"};
  SkeinProcess process(job().arguments("train", "waits", two + Overrides{"run.steps=60"}));
  StorageOfWorkers storage("waits");
  ASSERT_TRUE(wait_until([&] { return storage.num_steps() >= 10; }));
  storage.take_away();
  EXPECT_TRUE(wait_until([&] { return storage.num_generations() >= 5; }));
  const int64_t num_steps = storage.num_steps();
  storage.bring_back();
  const Outcome outcome = process.wait();
  EXPECT_EQ(num_steps, 60) << outcome.err;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // The newest copy is of the step before the end, which is done again.
  EXPECT_LE(storage.num_steps(), 61) << outcome.err;
  EXPECT_TRUE(fs::exists(job().checkpoint("waits", 60) / "manifest.json"));
}

TEST(FullDisk, ForTheMetrics) {
  job().trained("full_logs", {"run.steps=100"});
  const auto bytes = fs::file_size(job().run("full_logs") / "metrics.jsonl");
  // No file may be longer: neither the metrics, which wait in memory, nor the checkpoint.
  const Outcome full =
      run_skein(job().arguments("train", "full_logs", {"run.steps=110"}), bytes + 10);
  expect_refused(full, 1, {"the checkpoint of step 110 was not saved", "File too large"});
  EXPECT_NE(full.err.find("metrics.jsonl: File too large (27); training continues"),
            std::string::npos)
      << full.err;
  expect_checkpoints_good(job().run("full_logs"));
  // The torn line does no harm.
  job().trained("full_logs", {"run.steps=110"});
  EXPECT_EQ(read_curve(job().run("full_logs")).size(), 110u);
}

}  // namespace
}  // namespace skein
