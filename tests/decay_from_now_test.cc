// skein train RUN --decay-from-now [STEPS].
#include <gmock/gmock.h>

#include "tests/testing.h"

namespace skein {
namespace {

using testing::HasSubstr;

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

Arguments arguments(const std::string& run, const Overrides& overrides, const Arguments& more) {
  Arguments all = job().arguments("train", run, overrides);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::map<int64_t, double> rates(const std::string& run) {
  std::map<int64_t, double> rates;
  for (const OrderedJson& step : read_json_lines(job().run(run) / "metrics.jsonl")) {
    rates[step.at("step")] = step.at("learning_rate");
  }
  return rates;
}

const Overrides kConstant = {"optimizer.schedule=constant", "optimizer.warmup_steps=2",
                             "optimizer.learning_rate=1e-3", "optimizer.min_learning_rate=1e-4"};

TEST(DecayFromNow, DecaysOverWhatIsLeftAndIsKept) {
  job().trained("run", kConstant + Overrides{"run.steps=6"});
  const Overrides longer = kConstant + Overrides{"run.steps=10"};
  const Outcome outcome = TinyJob::must(
      arguments("run", longer + Overrides{"checkpoint.every_steps=1"}, {"--decay-from-now"}));
  EXPECT_THAT(outcome.err, HasSubstr("optimizer.schedule \"constant\" → \"linear\""));
  EXPECT_THAT(outcome.err, HasSubstr("optimizer.constant_steps 0 → 4"));
  const auto found = rates("run");
  for (int64_t step = 2; step <= 6; ++step) EXPECT_FLOAT_EQ(found.at(step), 1e-3) << step;
  EXPECT_FLOAT_EQ(found.at(7), 1e-3 - 9e-4 / 4);
  EXPECT_FLOAT_EQ(found.at(10), 1e-4);
  // config.toml of the run keeps it; so does the same command again, as a scheduler gives it.
  const std::string folder = job().run("run").string();
  TinyJob::must({"train", folder, "--set", "run.steps=11"});
  EXPECT_FLOAT_EQ(rates("run").at(11), 1e-4);
}

TEST(DecayFromNow, GoesOnWhereItIsStopped) {
  job().trained("whole", kConstant + Overrides{"run.steps=4"});
  fs::copy(job().run("whole"), job().run("parts"), fs::copy_options::recursive);
  const Overrides longer = kConstant + Overrides{"run.steps=12"};
  TinyJob::must(arguments("whole", longer, {"--decay-from-now", "6"}));
  // Stopped in the decay, and the same command again.
  SkeinProcess process(arguments("parts", longer + Overrides{"checkpoint.every_steps=1"},
                                 {"--decay-from-now", "6"}));
  wait_until([&] { return fs::exists(job().checkpoint("parts", 6)); }, 60);
  process.send(SIGTERM);
  process.wait();
  TinyJob::must(arguments("parts", longer, {"--decay-from-now", "6"}));
  EXPECT_EQ(rates("parts"), rates("whole"));
  EXPECT_FLOAT_EQ(rates("whole").at(10), 1e-4);
  EXPECT_FLOAT_EQ(rates("whole").at(12), 1e-4);
  const Outcome other = run_skein(
      arguments("whole", kConstant + Overrides{"run.steps=20"}, {"--decay-from-now", "3"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("has been decaying since step 4"));
}

TEST(DecayFromNow, IsRefusedWhereAScheduleCannotSayIt) {
  const auto refused = [&](const std::string& run, const Overrides& overrides,
                           const Arguments& more, const char* says) {
    const Outcome outcome = run_skein(arguments(run, overrides, more));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  refused("none", kConstant, {"--decay-from-now"}, "holds no checkpoint");
  EXPECT_FALSE(fs::exists(job().run("none")));
  job().trained("warming", kConstant + Overrides{"run.steps=1"});
  refused("warming", kConstant + Overrides{"run.steps=6"}, {"--decay-from-now"}, "in the warm-up");
  job().trained("done", kConstant + Overrides{"run.steps=3"});
  refused("done", kConstant + Overrides{"run.steps=3"}, {"--decay-from-now"}, "had its 3 steps");
  refused("done", kConstant + Overrides{"run.steps=5"}, {"--decay-from-now", "3"},
          "there are 2 left after step 3");
  refused("done", kConstant, {"--decay-from-now", "0"}, "whole number from 1");
}

}  // namespace
}  // namespace skein
