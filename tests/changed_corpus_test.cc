// A corpus that somebody overwrites, cuts, replaces or removes while a run reads it.
#include "tests/parallel_job.h"

namespace skein {
namespace {

class ChangedCorpus : public testing::Test {
 protected:
  static const TinyJob& job() {
    static const TinyJob job;
    return job;
  }
  // A corpus of its own, since the test changes it.
  fs::path corpus_of(const std::string& name) const {
    const fs::path copy = job().folder / (name + ".arrow");
    fs::copy_file(job().corpus(), copy, fs::copy_options::overwrite_existing);
    return copy;
  }
  Arguments arguments(const std::string& name, const Overrides& more = {}) const {
    return job().arguments("train", name,
                           Overrides{"data.train=" + corpus_of(name).string(), "run.steps=4000",
                                     "checkpoint.every_steps=20", "checkpoint.keep=1000"} +
                               more);
  }
  fs::path checkpoints(const std::string& name) const { return job().run(name) / "checkpoints"; }
  // Waits for a checkpoint, at most two minutes.
  void wait_for_checkpoint(const std::string& name) const {
    for (int i = 0; i < 12'000 && !fs::exists(checkpoints(name) / "step-00000020"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::string newest(const std::string& name) const {
    std::string newest;
    for (const auto& entry : fs::directory_iterator(checkpoints(name))) {
      const std::string step = entry.path().filename().string();
      if (step.starts_with("step-")) newest = std::max(newest, step);
    }
    return newest;
  }
  // Ends with 1, a line that names the corpus, and an event; nothing is saved afterwards.
  void expect_ended(const std::string& name, const Outcome& outcome, const std::string& before,
                    const std::string& word) const {
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    const auto lines = outcome.error_lines();
    ASSERT_EQ(lines.size(), 1u) << outcome.err;
    EXPECT_NE(lines[0].find(name + ".arrow"), std::string::npos) << lines[0];
    EXPECT_NE(lines[0].find(word), std::string::npos) << lines[0];
    // One save may have been under way.
    const int64_t step = std::stoll(before.substr(5));
    EXPECT_LE(newest(name), checkpoint_folder_name(step + 20));
    std::vector<std::string> reasons;
    for (const OrderedJson& json : read_json_lines(job().run(name) / "events.jsonl")) {
      if (json.at("event") == "failure") reasons.push_back(json.at("reason"));
    }
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_NE(reasons[0].find(word), std::string::npos) << reasons[0];
  }
};

TEST_F(ChangedCorpus, OverwrittenInPlaceEndsTheRun) {
  SkeinProcess process(arguments("written"));
  wait_for_checkpoint("written");
  const std::string before = newest("written");
  {  // the same size, and as one write, so that nothing is missing at any time
    std::string text = read_file(job().folder / "written.arrow");
    std::reverse(text.begin() + 4096, text.end() - 4096);
    std::fstream(job().folder / "written.arrow", std::ios::in | std::ios::out) << text;
  }
  expect_ended("written", process.wait(), before, "changed while it was read");
}

TEST_F(ChangedCorpus, OverwrittenUnderASupervisorEndsTheRun) {
  SkeinProcess process(arguments("supervised", {"launch.workers=2"}));
  wait_for_checkpoint("supervised");
  const std::string before = newest("supervised");
  {
    std::string text = read_file(job().folder / "supervised.arrow");
    std::reverse(text.begin() + 4096, text.end() - 4096);
    std::fstream(job().folder / "supervised.arrow", std::ios::in | std::ios::out) << text;
  }
  expect_ended("supervised", process.wait(), before, "changed while it was read");
}

TEST_F(ChangedCorpus, CutEndsTheRunWithoutASignal) {
  SkeinProcess process(arguments("cut"));
  wait_for_checkpoint("cut");
  const std::string before = newest("cut");
  fs::resize_file(job().folder / "cut.arrow", 5000);
  expect_ended("cut", process.wait(), before, "became shorter while it was read");
}

TEST_F(ChangedCorpus, RemovedIsToldAndHarmless) {
  const Overrides short_run = {"run.steps=300"};
  job().trained("kept", short_run + Overrides{"data.train=" + job().corpus().string()});
  SkeinProcess process(arguments("gone", short_run));
  wait_for_checkpoint("gone");
  fs::remove(job().folder / "gone.arrow");
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const size_t told = outcome.err.find("gone.arrow was removed while the run reads it");
  EXPECT_NE(told, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("gone.arrow was removed", told + 1), std::string::npos) << outcome.err;
  EXPECT_EQ(different_bits(read_curve(job().run("kept")), read_curve(job().run("gone"))), "");
}

}  // namespace
}  // namespace skein
