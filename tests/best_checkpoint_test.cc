// checkpoint.best_by and run.stop_after_worse: the best checkpoint stays beside the newest, over
// kills and continued runs; a run that gets no better ends, saved.
#include "skein/checkpoint/find/best_checkpoint.h"

#include <gmock/gmock.h>

#include "tests/parallel_job.h"

namespace skein {
namespace {

using testing::HasSubstr;

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// A learning rate that is too high after a while: the loss falls, then rises.
Overrides setting(int64_t steps) {
  return {fmt::format("run.steps={}", steps),
          "precision.mode=fp32",
          "data.validation=" + job().corpus().string(),
          "validate.every_steps=2",
          "validate.batches=1",
          "checkpoint.keep=1",
          "checkpoint.every_steps=5",
          "checkpoint.best_by=validation_loss",
          "optimizer.warmup_steps=40",
          "optimizer.decay_steps=1000",
          "optimizer.learning_rate=3",
          "optimizer.clip_norm=0"};
}

std::map<int64_t, float> validations(const std::string& run) {
  std::map<int64_t, float> losses;
  for (const OrderedJson& event : read_json_lines(job().run(run) / "events.jsonl")) {
    if (event.at("event") == "validation") {
      losses[event.at("step")] = event.at("loss").get<float>();
    }
  }
  return losses;
}

int64_t lowest(const std::map<int64_t, float>& losses) {
  return std::min_element(losses.begin(), losses.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

std::vector<int64_t> steps_of(const std::string& run) {
  std::vector<int64_t> steps;
  for (const CheckpointInfo& info : list_checkpoints(job().run(run) / "checkpoints")) {
    steps.push_back(info.step);
  }
  return steps;
}

TEST(BestCheckpoint, StaysBesideTheNewestAndIsMarked) {
  job().trained("whole", setting(20));
  const auto losses = validations("whole");
  const int64_t best = lowest(losses);
  ASSERT_LT(best, 20);
  EXPECT_EQ(steps_of("whole"), (std::vector<int64_t>{20, best}));
  const std::string run = job().run("whole").string();
  const Json rows = parse_json(TinyJob::must({"checkpoint", "list", run, "--json"}).out, "list");
  EXPECT_EQ(rows["checkpoints"][0]["best"], false);
  EXPECT_EQ(rows["checkpoints"][1]["best"], true);
  EXPECT_EQ(rows["checkpoints"][1]["validation_loss"].get<float>(), losses.at(best));
  EXPECT_THAT(TinyJob::must({"checkpoint", "list", run}).out,
              HasSubstr(fmt::format("best: validation_loss {:.4f}", losses.at(best))));
  TinyJob::must({"checkpoint", "verify", run});
}

TEST(BestCheckpoint, IsTheSameAfterStopsAndAKill) {
  job().trained("reference", setting(20));
  for (const int64_t steps : {3, 4, 9, 14}) job().trained("stopped", setting(steps));
  SkeinProcess process(job().arguments("train", "stopped", setting(20)));
  wait_until([&] { return fs::exists(job().checkpoint("stopped", 15)); }, 60);
  process.send(SIGKILL);
  process.wait();
  job().trained("stopped", setting(20));
  EXPECT_EQ(steps_of("stopped"), steps_of("reference"));
  job().trained("two", setting(20) + Overrides{"launch.workers=2"});
  EXPECT_EQ(steps_of("two"), steps_of("reference"));
}

TEST(BestCheckpoint, EndsARunThatGetsNoBetter) {
  const Overrides early = setting(200) + Overrides{"run.stop_after_worse=2"};
  const Outcome outcome = TinyJob::must(job().arguments("train", "early", early));
  const auto losses = validations("early");
  const int64_t best = lowest(losses), last = losses.rbegin()->first;
  EXPECT_EQ(last, best + 4);
  EXPECT_EQ(steps_of("early"), (std::vector<int64_t>{last, best}));
  EXPECT_THAT(outcome.err, HasSubstr("2 validations without a better validation_loss than"));
  const OrderedJson stop = read_json_lines(job().run("early") / "events.jsonl").back();
  EXPECT_EQ(stop.at("event"), "stop");
  EXPECT_EQ(stop.at("reason"), "no_better");
  // Again: nothing to do. And on, where more is allowed.
  const Outcome again = TinyJob::must(job().arguments("train", "early", early));
  EXPECT_THAT(again.err, HasSubstr("run.stop_after_worse higher"));
  EXPECT_EQ(steps_of("early").front(), last);
  job().trained("early", early + Overrides{"run.stop_after_worse=3"});
  EXPECT_EQ(steps_of("early").front(), last + 2);
  // Stopped after a validation, it ends at the same step.
  job().trained("paused", setting(best + 2));
  job().trained("paused", early);
  EXPECT_EQ(steps_of("paused"), (std::vector<int64_t>{last, best}));
  job().trained("early_two", early + Overrides{"launch.workers=2"});
  EXPECT_EQ(steps_of("early_two").front(), last);
}

TEST(BestCheckpoint, RefusesWhatCannotBeWatched) {
  const auto refused = [&](const Overrides& overrides, const char* says) {
    const Outcome outcome = job().train("none", overrides);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_FALSE(fs::exists(job().run("none")));
  };
  const std::string validation = "data.validation=" + job().corpus().string();
  refused({"checkpoint.best_by=validation_loss"}, "there is nothing to validate on");
  refused({"checkpoint.best_by=loss", validation}, "expected validation_loss");
  refused({"checkpoint.best_by=validation_loss", validation}, "every_steps is 0");
  refused({"run.stop_after_worse=2"}, "best_by names no loss");
}

}  // namespace
}  // namespace skein
