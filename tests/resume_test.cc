// Going on: from a checkpoint that is named, start after start; after a crash of another kind than
// a kill; beside another run; and from what came before a step that broke the numbers.
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// A run of 20 steps, saved at 10 and 20.
const std::string& source() {
  static const std::string name = [] {
    job().trained("source", {"run.steps=20", "checkpoint.every_steps=10"});
    return std::string("source");
  }();
  return name;
}

void copy_run(const std::string& from, const std::string& to) {
  fs::copy(job().run(from), job().run(to), fs::copy_options::recursive);
}

// Of the steps after the first 10: what source() did in them.
void expect_same_steps(const std::string& name, int64_t first, int64_t last) {
  const auto expected = read_curve(job().run(source())), found = read_curve(job().run(name));
  for (int64_t step = first; step <= last; ++step) {
    ASSERT_TRUE(found.contains(step)) << step;
    EXPECT_EQ(found.at(step), expected.at(step)) << step;
  }
}

std::vector<int64_t> starts_of(const std::string& name) {
  std::vector<int64_t> steps;
  for (const OrderedJson& event : read_json_lines(job().run(name) / "events.jsonl")) {
    if (event.at("event") == "start") steps.push_back(event.at("step"));
  }
  return steps;
}

// The same command over three restarts, in a folder of its own: each goes on where the last ended.
TEST(ResumePath, MovesForwardOverThreeRestarts) {
  const Overrides base = {"run.resume=" + job().checkpoint(source(), 10).string(),
                          "checkpoint.every_steps=2"};
  for (const int64_t steps : {13, 15, 18, 20}) {
    job().trained("forward", base + Overrides{fmt::format("run.steps={}", steps)});
  }
  EXPECT_EQ(starts_of("forward"), (std::vector<int64_t>{10, 13, 15, 18}));
  expect_same_steps("forward", 11, 20);
}

// A run's folder in the place of a checkpoint.
TEST(ResumePath, TakesARun) {
  const Overrides base = {"run.resume=" + job().run(source()).string()};
  job().trained("of_run", base + Overrides{"run.steps=22"});
  const Outcome again = job().train("of_run", base + Overrides{"run.steps=24"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("resuming after step 22"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("began from run.resume"), std::string::npos) << again.err;
  EXPECT_EQ(starts_of("of_run"), (std::vector<int64_t>{20, 22}));
}

// Back to step 10 in the same folder: retention keeps what the run came from, and `auto` does not
// take up again what was left.
TEST(ResumePath, GoesBackInItsOwnFolder) {
  source();
  copy_run("source", "back");
  const Overrides back = {"run.resume=" + job().checkpoint("back", 10).string(),
                          "checkpoint.every_steps=1", "checkpoint.keep=3"};
  job().trained("back", back + Overrides{"run.steps=13"});
  for (const int64_t step : {10, 11, 12, 13, 20}) {
    EXPECT_TRUE(fs::exists(job().checkpoint("back", step) / "manifest.json")) << step;
  }
  job().trained("back", {"run.steps=15", "checkpoint.every_steps=1", "checkpoint.keep=3"});
  job().trained("back", back + Overrides{"run.steps=16"});
  EXPECT_EQ(starts_of("back"), (std::vector<int64_t>{0, 10, 13, 15}));
  expect_same_steps("back", 11, 16);
  EXPECT_TRUE(fs::exists(job().checkpoint("back", 10)));
  // Whoever reads the run gets what it went on with.
  const Outcome exported = run_skein(
      {"checkpoint", "export", job().run("back").string(), "--out", job().run("back_hf").string()});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_NE(exported.err.find("step-00000016 →"), std::string::npos) << exported.err;
}

// What a crash between the two renames of a file system without exchange leaves.
TEST(Resume, FindsACheckpointThatWasBeingReplaced) {
  source();
  copy_run("source", "replaced");
  for (const int64_t step : {10, 20}) {
    const fs::path path = job().checkpoint("replaced", step);
    fs::rename(path, path.string() + ".replaced");
  }
  const std::string run = job().run("replaced").string();
  const Json listed = Json::parse(run_skein({"checkpoint", "list", run, "--json"}).out);
  EXPECT_EQ(listed.at("checkpoints").size(), 2u) << listed;
  expect_checkpoints_good(run);
  const std::string tokens = (job().folder / "tokens.json").string();
  std::ofstream(tokens) << "[[1, 2, 3]]";
  EXPECT_EQ(run_skein({"score", "--model", run, "--tokens", tokens}).exit_code, 0);
  job().trained("replaced", {"run.steps=21"});
  EXPECT_EQ(starts_of("replaced"), (std::vector<int64_t>{0, 20}));
}

// Two files of a checkpoint that the operating system does not give out now.
TEST(Resume, AReadErrorStopsTheStart) {
  source();
  copy_run("source", "unreadable");
  const fs::path file = job().checkpoint("unreadable", 20) / "optimizer-00000-00000.safetensors";
  fs::rename(file, file.string() + ".aside");
  fs::create_symlink(file.filename(), file);  // a loop
  expect_refused(job().train("unreadable", {"run.steps=21"}), 1,
                 {file.string(), "symbolic links", "may be good", "start again"});
  EXPECT_EQ(starts_of("unreadable"), (std::vector<int64_t>{0}));
  fs::rename(file.string() + ".aside", file);
  job().trained("unreadable", {"run.steps=21"});
  EXPECT_EQ(starts_of("unreadable"), (std::vector<int64_t>{0, 20}));
}

// Waits until `holds`, at most 60 s.
template <typename Condition>
void wait_until(const Condition& holds) {
  for (int i = 0; i < 60'000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Resume, TwoRunsDoNotShareAFolderOfCheckpoints) {
  const Overrides shared = {"checkpoint.dir=" + (job().folder / "shared").string(),
                            "run.steps=900000", "checkpoint.every_steps=5"};
  SkeinProcess first(job().arguments("train", "first", shared));
  wait_until([] { return fs::exists(job().folder / "shared" / "step-00000005"); });
  expect_refused(job().train("second", shared), 1,
                 {"checkpoint folder " + (job().folder / "shared").string() + " is in use",
                  job().run("first").string(), "checkpoint.dir"});
  first.send(SIGTERM);
  EXPECT_EQ(first.wait().exit_code, 75);
}

// The step after a save breaks the numbers while that save is still being written.
TEST(Resume, ABrokenStepDoesNotCostTheCheckpointBeforeIt) {
  for (const int workers : {1, 2}) {
    const std::string name = fmt::format("broken_{}", workers);
    const Overrides base = {fmt::format("launch.workers={}", workers),
                            "precision.mode=fp32",
                            "optimizer.schedule=constant",
                            "optimizer.warmup_steps=0",
                            "optimizer.clip_norm=0",
                            "checkpoint.every_steps=1"};
    job().trained(name, base + Overrides{"run.steps=2"});
    // The weights are finite after step 3, and too large for any loss after it.
    const Outcome outcome =
        job().train(name, base + Overrides{"run.steps=9", "optimizer.learning_rate=1e3",
                                           "optimizer.weight_decay=1e3"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_NE(outcome.err.find("expected finite numbers"), std::string::npos) << outcome.err;
    int64_t begun = 0, committed = 0;
    for (const OrderedJson& event : read_json_lines(job().run(name) / "events.jsonl")) {
      if (event.at("event") == "checkpoint_begin") begun = event.at("step");
      if (event.at("event") == "checkpoint_commit") committed = event.at("step");
    }
    EXPECT_GT(begun, 2);
    EXPECT_EQ(committed, begun);
    EXPECT_NE(outcome.err.find(fmt::format("The newest checkpoint is of step {}", committed)),
              std::string::npos)
        << outcome.err;
    expect_checkpoints_good(job().run(name));
    for (const auto& entry : fs::directory_iterator(job().run(name) / "checkpoints")) {
      EXPECT_NE(entry.path().extension(), ".partial");
      EXPECT_NE(entry.path().extension(), ".failed");
    }
  }
}

TEST(Resume, ConstantsThatVanishInFp32AreRefused) {
  const struct {
    const char* override;
    Words words;
  } cases[] = {{"optimizer.epsilon=1e-50", {"epsilon", "1e-50", "fp32"}},
               {"optimizer.epsilon=1e-42", {"epsilon", "1e-42"}},
               {"optimizer.learning_rate=1e-46", {"learning_rate", "1e-46"}},
               {"optimizer.min_learning_rate=1e-300", {"min_learning_rate", "1e-300"}},
               {"optimizer.clip_norm=1e-40", {"clip_norm", "1e-40"}},
               {"optimizer.weight_decay=1e-60", {"weight_decay", "1e-60"}},
               {"model.init_std=1e-60", {"init_std", "1e-60"}},
               {"optimizer.beta2=0.99999999999", {"beta2", "0.99999999999", "1"}},
               {"optimizer.beta1=0.9999999999999999", {"beta1", "1"}}};
  for (const auto& item : cases) {
    SCOPED_TRACE(item.override);
    expect_refused(job().train("refused", {item.override}), 2, item.words);
    EXPECT_FALSE(fs::exists(job().run("refused")));
  }
}

}  // namespace
}  // namespace skein
