// skein train --sweep: runs of their own, continued by the same command, and a table at the end.
#include <gmock/gmock.h>

#include "skein/checkpoint/find/checkpoint_folder.h"
#include "tests/testing.h"

namespace skein {
namespace {

using testing::HasSubstr;

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

Arguments sweep(const std::string& dir, const Overrides& overrides, const Arguments& more) {
  Arguments all = job().arguments("train", dir, overrides);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

size_t starts_of(const fs::path& run) {
  size_t starts = 0;
  for (const OrderedJson& event : read_json_lines(run / "events.jsonl")) {
    starts += event.at("event") == "start" ? 1 : 0;
  }
  return starts;
}

const Overrides kValidated = {"run.steps=4", "validate.every_steps=2", "validate.batches=1",
                              "device.threads=1"};

TEST(TrainSweep, TrainsEachCombinationAndEndsInATable) {
  const Overrides overrides = kValidated + Overrides{"data.validation=" + job().corpus().string()};
  const Arguments swept = {"--sweep", "optimizer.learning_rate=1e-3,1e-5", "--sweep",
                           "run.seed=1,2", "--json"};
  const Outcome outcome = TinyJob::must(sweep("table", overrides, swept));
  const Json rows = parse_json(outcome.out, "the table").at("runs");
  ASSERT_EQ(rows.size(), 4u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("state"), "done");
    EXPECT_EQ(rows[i].at("step"), 4);
    if (i > 0) {
      EXPECT_LE(rows[i - 1].at("validation_loss"), rows[i].at("validation_loss"));
    }
  }
  EXPECT_EQ(rows[0].at("settings").at("optimizer.learning_rate"), "1e-3");
  // Each is the run that its settings give alone.
  job().trained("alone", overrides + Overrides{"optimizer.learning_rate=1e-5", "run.seed=2"});
  EXPECT_EQ(read_curve(job().run("table") / "0003"), read_curve(job().run("alone")));
  // Again: all is done, and nothing starts.
  const Outcome again = TinyJob::must(sweep("table", overrides, swept));
  EXPECT_EQ(again.out, outcome.out);
  EXPECT_THAT(again.err, HasSubstr("4 of 4 runs are done already"));
  EXPECT_EQ(starts_of(job().run("table") / "0000"), 1u);
  // For people.
  const Outcome text = TinyJob::must(
      sweep("table", overrides,
            {"--sweep", "optimizer.learning_rate=1e-3,1e-5", "--sweep", "run.seed=1,2"}));
  EXPECT_THAT(text.out, HasSubstr("validation"));
  EXPECT_THAT(text.out, HasSubstr("1e-3"));
  // Other values in a folder that holds runs.
  const Outcome other =
      run_skein(sweep("table", overrides,
                      {"--sweep", "optimizer.learning_rate=5e-3,1e-5", "--sweep", "run.seed=1,2"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("holds a run with optimizer.learning_rate"));
  // The folder of a sweep is not that of a run.
  const std::string folder = job().run("table").string(), first = folder + "/0000";
  for (const char* command : {"train", "report"}) {
    EXPECT_THAT(run_skein({command, folder}).err,
                HasSubstr("it holds the runs of a sweep: name one, such as " + first));
  }
}

TEST(TrainSweep, StopsAllRunsSavedAndGoesOn) {
  const Overrides overrides = {"run.steps=3000", "device.threads=1"};
  const Arguments swept = {"--sweep", "run.seed=1,2,3", "--side-by-side", "2"};
  SkeinProcess process(sweep("stopped", overrides, swept));
  const fs::path dir = job().run("stopped");
  const auto has_steps = [&](const char* run) {
    std::error_code none;
    const auto size = fs::file_size(dir / run / "metrics.jsonl", none);
    return !none && size > 0;
  };
  ASSERT_TRUE(wait_until([&] { return has_steps("0000") && has_steps("0001"); }));
  process.send(SIGINT);
  const Outcome stopped = process.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("stopped"));
  EXPECT_THAT(stopped.out, HasSubstr("not begun"));
  EXPECT_FALSE(fs::exists(dir / "0002"));
  ASSERT_EQ(list_checkpoints(dir / "0000" / "checkpoints").size(), 1u);
  ASSERT_EQ(list_checkpoints(dir / "0001" / "checkpoints").size(), 1u);
  const auto reached = list_checkpoints(dir / "0000" / "checkpoints").front().step;
  const Outcome done = TinyJob::must(sweep(
      "stopped", Overrides{fmt::format("run.steps={}", reached + 2), "device.threads=1"}, swept));
  EXPECT_EQ(starts_of(dir / "0000"), 2u);
  EXPECT_EQ(list_checkpoints(dir / "0002" / "checkpoints").front().step, reached + 2);
  EXPECT_TRUE(fs::exists(dir / "0002.log"));
}

TEST(TrainSweep, ARunThatFailsLetsTheOthersGoOn) {
  // At this rate the loss is no number after a few steps.
  const Outcome outcome = run_skein(
      sweep("fails", {"run.steps=40", "optimizer.clip_norm=0", "optimizer.warmup_steps=0"},
            {"--sweep", "optimizer.learning_rate=900,1e-3"}));
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("failed"));
  EXPECT_THAT(outcome.out, HasSubstr("done"));
}

TEST(TrainSweep, IsRefusedInOneLineAndMakesNothing) {
  const auto refused = [&](const Arguments& more, const char* says, const Overrides& set = {}) {
    const Outcome outcome = run_skein(sweep("none", set, more));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(job().run("none")));
  };
  refused({"--sweep", "data.train=a.arrow,b.arrow"}, "--sweep data.train");
  refused({"--sweep", "data.tokenizer=a,b"}, "--sweep data.tokenizer");
  refused({"--sweep", "run.seed"}, "section.key=V1,V2");
  refused({"--sweep", "lr=1e-3,3e-4"}, "did you mean learning_rate in [optimizer]?");
  refused({"--sweep", "run.seed=[1,2]"}, "a list in brackets");
  refused({"--sweep", "run.dir=a,b"}, "gives each run its own folder");
  refused({"--sweep", "run.seeds=1,2"}, "seed");
  refused({"--sweep", "batch.micro_sequences=1,3"}, "micro_sequences");
  refused({"--sweep", "run.seed=1,2"}, "runs on one machine", {"launch.nodes=2"});
}

}  // namespace
}  // namespace skein
