// Files that may grow no longer, as on a full disk: training goes on, what was not saved is told,
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
    EXPECT_NE(outcome.err.find("training goes on"), std::string::npos) << outcome.err;
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

TEST(FullDisk, ForTheMetrics) {
  job().trained("full_logs", {"run.steps=100"});
  const auto bytes = fs::file_size(job().run("full_logs") / "metrics.jsonl");
  // No file may be longer: neither the metrics, which wait in memory, nor the checkpoint.
  const Outcome full =
      run_skein(job().arguments("train", "full_logs", {"run.steps=110"}), bytes + 10);
  expect_refused(full, 1, {"the checkpoint of step 110 was not saved", "File too large"});
  EXPECT_NE(full.err.find("metrics.jsonl: File too large (27); training goes on"),
            std::string::npos)
      << full.err;
  expect_checkpoints_good(job().run("full_logs"));
  // The torn line does no harm.
  job().trained("full_logs", {"run.steps=110"});
  EXPECT_EQ(read_curve(job().run("full_logs")).size(), 110u);
}

}  // namespace
}  // namespace skein
