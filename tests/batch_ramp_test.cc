// A batch that grows on the way, and one that is changed where a run continues: the rows are those
// of the definition (docs/data_order.md), with the same bits however the run is laid out, killed
// and continued; a run without a ramp is what it was.
#include <gmock/gmock.h>

#include "tests/parallel_job.h"

namespace skein {
namespace {

using testing::HasSubstr;

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

constexpr int64_t kSteps = 9;
const Overrides kRamp = ParallelJob::setting(kSteps, "bf16-sr") +
                        Overrides{"batch.ramp=2 until 3, 4 until 6", "parallel.reduction_width=2",
                                  "model.num_hidden_layers=2",       "model.num_attention_heads=4",
                                  "checkpoint.every_steps=2",        "checkpoint.keep=0"};

// The tokens and lanes of each row of a step.
Json rows_of(const std::string& what, int64_t step, const Overrides& overrides = {}) {
  Arguments arguments = {"data", "sample", what, "--json", "--step", fmt::format("{}", step)};
  for (const std::string& text : overrides) arguments.insert(arguments.end(), {"--set", text});
  return parse_json(TinyJob::must(arguments).out, "sample").at("rows");
}

void expect_as(const std::string& reference, const std::string& name) {
  EXPECT_EQ(different_bits(read_curve(job().run(reference)), read_curve(job().run(name))), "")
      << name;
  EXPECT_EQ(different_state(job().checkpoint(reference, kSteps), job().checkpoint(name, kSteps)),
            "")
      << name;
}

class BatchRampRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { job().trained("reference", kRamp); }
};

TEST_F(BatchRampRun, TakesTheRowsOfALargerBatchInTheirOrder) {
  const std::string run = job().run("reference").string();
  for (const OrderedJson& line : read_json_lines(job().run("reference") / "metrics.jsonl")) {
    const int64_t step = line.at("step");
    EXPECT_EQ(line.at("batch_sequences"), step <= 3 ? 2 : step <= 6 ? 4 : 8) << step;
  }
  Json rows = Json::array();
  for (int64_t step = 1; step <= kSteps; ++step) {
    const Json of_step = rows_of(run, step);
    EXPECT_EQ(of_step.size(), step <= 3 ? 2u : step <= 6 ? 4u : 8u) << step;
    rows.insert(rows.end(), of_step.begin(), of_step.end());
  }
  // Without a ramp: the same rows, one of every lane a step.
  const Overrides whole = kRamp + Overrides{"batch.ramp=", "run.dir=" + job().run("new").string()};
  Json expected = Json::array();
  for (int64_t step = 1; std::ssize(expected) < std::ssize(rows); ++step) {
    const Json of_step = rows_of(job().config().string(), step, whole);
    expected.insert(expected.end(), of_step.begin(), of_step.end());
  }
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], expected[i]) << "row " << i;
  // Tokens count the labels of each step's own rows.
  int64_t labels = 0;
  for (const Json& row : rows) {
    for (const Json& label : row.at("labels")) labels += label >= 0 ? 1 : 0;
  }
  const OrderedJson last = read_json_lines(job().run("reference") / "metrics.jsonl").back();
  EXPECT_EQ(last.at("tokens"), labels);
  // One lane alone.
  EXPECT_THAT(TinyJob::must({"data", "show", run, "--step", "2", "--lane", "3"}).out,
              HasSubstr("--- lane 3, tokens 0-"));
  const Outcome not_there = run_skein({"data", "show", run, "--step", "2", "--lane", "4"});
  EXPECT_EQ(not_there.exit_code, 2);
  EXPECT_THAT(not_there.err, HasSubstr("2 rows, of lanes 2 to 3"));
}

TEST_F(BatchRampRun, HasTheSameBitsInEveryLayout) {
  const std::pair<const char*, Overrides> layouts[] = {
      {"two", {"launch.workers=2"}},
      {"zero3", {"launch.workers=2", "parallel.zero=3"}},
      {"no_overlap", {"launch.workers=2", "parallel.overlap=false"}},
      {"pipeline", {"launch.workers=2", "parallel.pipeline=2", "parallel.data=1"}},
      {"pipeline_data", {"launch.workers=4", "parallel.pipeline=2", "parallel.data=2"}},
  };
  for (const auto& [name, overrides] : layouts) {
    job().trained(name, kRamp + overrides);
    expect_as("reference", name);
    job().remove(name);
  }
}

// Stops within a size, at its end and after it, and goes on with another number of ranks.
TEST_F(BatchRampRun, ContinuesAtAnyStepWithAnyRanks) {
  for (const int64_t stop : {1, 2, 3, 4, 6, 7}) {
    const std::string name = fmt::format("stopped_{}", stop);
    job().trained(name, kRamp + Overrides{fmt::format("run.steps={}", stop), "launch.workers=2"});
    job().trained(name, kRamp);
    expect_as("reference", name);
    job().remove(name);
  }
}

TEST_F(BatchRampRun, GoesOnAfterAKill) {
  const Overrides killed = kRamp + Overrides{"launch.workers=2"};
  SkeinProcess process(job().arguments("train", "killed", killed));
  ASSERT_TRUE(wait_until([&] { return fs::exists(job().checkpoint("killed", 4)); }, 300));
  process.send(SIGKILL);
  process.wait();
  job().trained("killed", killed);
  expect_as("reference", "killed");
}

// A batch keeps its rows, whatever is skipped.
TEST_F(BatchRampRun, SkipsBatchesAcrossABorder) {
  const Overrides skips = kRamp + Overrides{"data.skip_batches=3-4, 7"};
  job().trained("skips", skips);
  const std::string run = job().run("skips").string(), all = job().run("reference").string();
  const int64_t batches[] = {1, 2, 5, 6, 8, 9};
  for (int64_t step = 1; step <= 6; ++step) {
    EXPECT_EQ(rows_of(run, step), rows_of(all, batches[step - 1])) << step;
  }
  job().trained("skips_two", skips + Overrides{"launch.workers=2", "run.steps=4"});
  job().trained("skips_two", skips + Overrides{"launch.workers=2"});
  expect_as("skips", "skips_two");
}

// Lanes stay those of the first start.
TEST(BatchChange, TakesTheRowsThatFollow) {
  const Overrides base =
      ParallelJob::setting(4) + Overrides{"batch.global_sequences=4", "parallel.reduction_width=2",
                                          "model.num_hidden_layers=2", "checkpoint.every_steps=2"};
  job().trained("plain", base + Overrides{"run.steps=13"});
  job().trained("changed", base);
  const std::string run = job().run("changed").string(), plain = job().run("plain").string();
  const Outcome more = TinyJob::must(job().arguments(
      "train", "changed", base + Overrides{"run.steps=6", "batch.global_sequences=8"}));
  EXPECT_THAT(more.err, HasSubstr("batch.global_sequences 4 → 8"));
  job().trained("changed",
                base + Overrides{"run.steps=9", "batch.global_sequences=6", "launch.workers=2"});
  Json rows = Json::array(), expected = Json::array();
  for (int64_t step = 1; step <= 9; ++step) {
    const Json of_step = rows_of(run, step);
    EXPECT_EQ(of_step.size(), step <= 4 ? 4u : step <= 6 ? 8u : 6u) << step;
    rows.insert(rows.end(), of_step.begin(), of_step.end());
  }
  for (int64_t step = 1; step <= 13; ++step) {  // 52 rows; the other took 16 + 16 + 18
    const Json of_step = rows_of(plain, step);
    expected.insert(expected.end(), of_step.begin(), of_step.end());
  }
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], expected[i]) << "row " << i;
  // The answer for a step of before does not depend on a checkpoint that lies between.
  EXPECT_EQ(rows_of(run, 5)[0], expected[16]);
  const Outcome why = TinyJob::must({"why", run, "--step", "6", "--json"});
  EXPECT_EQ(parse_json(why.out, "why").at("step"), 6);
}

TEST(BatchChange, AManifestWithoutItIsWhatItWas) {
  const Overrides base = ParallelJob::setting(2) + Overrides{"model.num_hidden_layers=2"};
  job().trained("without", base);
  const CheckpointReader reader(job().checkpoint("without", 2));
  const Json& lanes = reader.state().lanes;
  EXPECT_EQ(lanes.at("global_sequences"), 8);
  EXPECT_FALSE(lanes.contains("rows"));
  EXPECT_FALSE(lanes.contains("num_lanes"));
}

TEST(BatchChange, IsRefusedInOneLineWhereItCannotBe) {
  const auto refused = [&](const std::string& run, const Overrides& overrides,
                           std::initializer_list<const char*> says) {
    const Outcome outcome = job().train(run, overrides);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    for (const char* text : says) EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome;
  };
  const Overrides base = ParallelJob::setting(2) + Overrides{"model.num_hidden_layers=2"};
  const Overrides free = base + Overrides{"parallel.reduction_width=0"};
  refused("none", free + Overrides{"batch.ramp=3 until 4", "parallel.data=2", "launch.workers=2"},
          {"ramp has batches of 3", "multiple of [parallel] data, which is 2"});
  refused("none", free + Overrides{"batch.ramp=3 until 4", "launch.workers=2"},
          {"ramp has batches of 3", "2 data ranks"});
  refused("none", base + Overrides{"batch.ramp=4 until 4"},
          {"ramp has batches of 4", "reduction_width, which is 8"});
  refused("none", free + Overrides{"batch.ramp=3 until 4", "batch.micro_sequences=2"},
          {"ramp has batches of 3", "multiple of micro_sequences"});
  refused("none", free + Overrides{"batch.ramp=8 until 4"}, {"expected it to be larger"});
  refused("none", free + Overrides{"batch.ramp=often"}, {"64 until 1000"});
  EXPECT_FALSE(fs::exists(job().run("none")));
  job().trained("lanes", base);
  const Outcome outcome = job().train("lanes", base + Overrides{"data.lanes=4", "run.steps=3"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("was trained with 8"));
}

}  // namespace
}  // namespace skein
