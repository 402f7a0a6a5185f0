#include "skein/config/length.h"

#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "tests/places.h"

namespace skein {
namespace {

constexpr char kBatch[] = "[data]\nsequence_length = 64\n[batch]\nglobal_sequences = 10\n";

Config parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_config(text, "run.toml", overrides);
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(RunLength, TokensBecomeSteps) {
  const Config config = parse(std::string("[run]\ntokens = 6401\n") + kBatch);
  EXPECT_EQ(config.run.steps, 11);  // of 640 tokens
  EXPECT_EQ(config.run.tokens, 0);
  EXPECT_EQ(run_length_notes(config).front(), "run.tokens = 6401 is run.steps = 11 of 640 tokens");
  EXPECT_EQ(config.optimizer.warmup_steps, 1);
  EXPECT_EQ(config.optimizer.decay_steps, 10);
  // The printed form sets run.steps and reads back to the same.
  EXPECT_EQ(parse(config_text(config)), config);
  EXPECT_EQ(run_length_notes(parse(config_text(config))).size(), 0u);
  EXPECT_NE(error_of("[run]\ntokens = 9000000000000000\n" + std::string(kBatch))
                .find("expected at most 268435455 steps"),
            std::string::npos);
}

TEST(RunLength, MayBeWrittenAsAFloat) {
  // In steps of 1024 rows of 4096 tokens.
  EXPECT_EQ(parse("[run]\ntokens = 100e9\n").run.steps, 23842);
  EXPECT_EQ(parse("", {"run.tokens=1e9"}).run.steps, 239);
  EXPECT_EQ(parse("[run]\ntokens = 1e11\n"), parse("[run]\ntokens = 100_000_000_000\n"));
  EXPECT_EQ(error_of("", {"run.tokens=1.5"}),
            "--set run.tokens=1.5: tokens in [run] is 1.5 (a float): expected a whole number from "
            "0 to 9000000000000000");
}

TEST(RunLength, OneKeySaysIt) {
  EXPECT_EQ(
      error_of("[run]\nsteps = 5\ntokens = 100\n"),
      "run.toml:3: run.tokens beside run.steps (run.toml:2): expected one of steps, epochs and "
      "tokens, which say how long the run is");
  EXPECT_NE(error_of("[run]\nepochs = 1.5\ntokens = 100\n"), "no error");
  EXPECT_EQ(error_of("[run]\nsteps = 5\ntokens = 0\nepochs = 0\n"), "no error");
  EXPECT_NE(error_of("", {"run.steps=5", "run.epochs=1"}), "no error");
  // --set overrides the file, whichever of the keys it sets.
  EXPECT_EQ(parse(std::string("[run]\ntokens = 6400\n") + kBatch, {"run.steps=3"}).run.steps, 3);
  EXPECT_EQ(parse(std::string("[run]\nsteps = 7\n") + kBatch, {"run.tokens=6400"}).run.steps, 10);
  // 0 says nothing, whichever comes first.
  EXPECT_EQ(parse("", {"run.steps=0", "run.epochs=0.5"}).run.epochs, 0.5);
  EXPECT_EQ(parse(kBatch, {"run.tokens=6400", "run.steps=0"}).run.steps, 10);
  EXPECT_EQ(parse("[run]\nsteps = 0\nepochs = 0.5\n").run.epochs, 0.5);
  EXPECT_NE(error_of("[run]\nsteps = 0\nepochs = 0\n").find("expected one of them, or steps"),
            std::string::npos);
  const Config epochs = parse("[run]\nsteps = 7\n", {"run.epochs=2.5"});
  EXPECT_EQ(epochs.run.epochs, 2.5);
}

TEST(RunLength, APlanWithoutACorpusCannotCountEpochs) {
  Config config = parse("[run]\nepochs = 2\n");
  EXPECT_THROW(count_epochs(config, ConfigUse::kPlan), Error);
}

TEST(RunLength, TheScheduleSuitsTheRunWhereItIsNotSet) {
  struct Case {
    int64_t steps, warmup, decay;
  };
  for (const Case& one : {Case{10, 1, 9}, Case{1, 0, 1}, Case{2000, 200, 1800},
                          Case{20'000, 2000, 18'000}, Case{500'000, 2000, 480'000}}) {
    const Config config = parse("[run]\nsteps = " + std::to_string(one.steps));
    EXPECT_EQ(config.optimizer.warmup_steps, one.warmup) << one.steps;
    EXPECT_EQ(config.optimizer.decay_steps, one.decay) << one.steps;
    EXPECT_EQ(run_length_notes(config).empty(), one.steps == 500'000);
    EXPECT_TRUE(schedule_warnings(config).empty()) << schedule_warnings(config).front();
    // The schedule reaches its peak, and ends at the minimum.
    const LearningRateSchedule schedule = learning_rate_schedule(config.optimizer);
    if (one.steps >= 10) {
      EXPECT_FLOAT_EQ(schedule.at(one.warmup), 3e-4f);
    }
    EXPECT_FLOAT_EQ(schedule.at(one.steps), 3e-5f);
  }
  const Config set = parse("[run]\nsteps = 10\n[optimizer]\nwarmup_steps = 3\n");
  EXPECT_EQ(set.optimizer.warmup_steps, 3);
  EXPECT_EQ(set.optimizer.decay_steps, 7);
  EXPECT_EQ(run_length_notes(set).front(),
            "optimizer.decay_steps = 7 follows from run.steps = 10, since it is not set");
  EXPECT_EQ(run_length_notes(parse("[run]\nsteps = 10\n")).front(),
            "optimizer.warmup_steps = 1 and optimizer.decay_steps = 9 follow from run.steps = 10, "
            "since they are not set");
  const Config held = parse("[run]\nsteps = 100\n[optimizer]\nconstant_steps = 60\n");
  EXPECT_EQ(held.optimizer.decay_steps, 30);
}

// A ratio of the peak, in decimal digits: 0.1 * 3e-4 as doubles is 2.9999999999999997e-05.
TEST(LearningRateFloor, IsARatioOfThePeakWhereItIsNotSet) {
  const auto floor = [](const std::string& optimizer) {
    return parse("[optimizer]\n" + optimizer).optimizer.min_learning_rate;
  };
  EXPECT_EQ(floor(""), 3e-5);
  EXPECT_EQ(floor("learning_rate = 3e-4"), 3e-5);
  EXPECT_EQ(floor("learning_rate = 1e-5"), 1e-6);
  EXPECT_EQ(floor("learning_rate = 3e-3"), 3e-4);
  EXPECT_EQ(floor("learning_rate = 1.5e-4"), 1.5e-5);
  EXPECT_EQ(floor("learning_rate = 1e-3\nmin_learning_rate_ratio = 0"), 0);
  EXPECT_EQ(floor("learning_rate = 1e-3\nmin_learning_rate_ratio = 1"), 1e-3);
  EXPECT_EQ(floor("learning_rate = 1e-3\nmin_learning_rate = 3e-5"), 3e-5);
  EXPECT_EQ(floor("min_learning_rate = 2e-5\nmin_learning_rate_ratio = 0.5"), 2e-5);
  EXPECT_NE(error_of("[optimizer]\nmin_learning_rate_ratio = 1.5").find("from 0 to 1"),
            std::string::npos);
  // The continued run of the default schedule, step by step.
  OptimizerConfig documented;
  documented.warmup_steps = 200;
  documented.decay_steps = 1800;
  const LearningRateSchedule before = learning_rate_schedule(documented),
                             now = learning_rate_schedule(parse("").optimizer);
  for (int64_t step = 1; step <= 2100; ++step) EXPECT_EQ(now.at(step), before.at(step)) << step;
}

TEST(LearningRateFloor, IsSaidWhereItIsNoDefault) {
  const auto notes = [](const std::string& optimizer) {
    return run_length_notes(parse("[run]\nsteps = 500000\n[optimizer]\n" + optimizer));
  };
  EXPECT_TRUE(notes("learning_rate = 3e-4").empty());
  EXPECT_TRUE(notes("learning_rate = 1e-5\nmin_learning_rate = 1e-6").empty());
  EXPECT_TRUE(notes("learning_rate = 1e-5\nschedule = \"constant\"").empty());
  ASSERT_EQ(notes("learning_rate = 1e-5").size(), 1u);
  EXPECT_EQ(notes("learning_rate = 1e-5").front(),
            "optimizer.min_learning_rate = 1e-06 is 0.1 of optimizer.learning_rate = 1e-05 "
            "(min_learning_rate_ratio), since it is not set");
}

TEST(LearningRateFloor, OfARunFolderFollowsWhatSetChanges) {
  const auto floor = [](const std::string& text, const std::vector<std::string>& overrides) {
    return parse(text, overrides).optimizer.min_learning_rate;
  };
  const std::string written = config_text(parse("[optimizer]\nlearning_rate = 1e-3\n"));
  EXPECT_EQ(parse(written), parse("[optimizer]\nlearning_rate = 1e-3\n"));
  EXPECT_EQ(floor(written, {}), 1e-4);
  EXPECT_EQ(floor(written, {"optimizer.learning_rate=1e-5"}), 1e-6);
  EXPECT_EQ(floor(written, {"optimizer.min_learning_rate_ratio=0.5"}), 5e-4);
  EXPECT_EQ(floor(written, {"optimizer.learning_rate=1e-2", "optimizer.min_learning_rate=2e-5"}),
            2e-5);
  // A floor that was set stays, also in the config.toml of a version without the ratio.
  const std::string absolute =
      config_text(parse("[optimizer]\nlearning_rate = 1e-3\nmin_learning_rate = 2e-5\n"));
  EXPECT_EQ(floor(absolute, {"optimizer.learning_rate=1e-2"}), 2e-5);
  EXPECT_EQ(floor(absolute, {"optimizer.min_learning_rate_ratio=0.2"}), 2e-4);
  EXPECT_EQ(floor(absolute,
                  {"optimizer.min_learning_rate=3e-5", "optimizer.min_learning_rate_ratio=0.2"}),
            3e-5);
  const std::string older = "[optimizer]\nlearning_rate = 0.003\nmin_learning_rate = 3e-05\n";
  EXPECT_EQ(floor(older, {}), 3e-5);
  const std::string usual = "[optimizer]\nlearning_rate = 0.0003\nmin_learning_rate = 3e-05\n";
  EXPECT_EQ(floor(usual, {"optimizer.learning_rate=1e-3"}), 3e-5);
}

TEST(RunLength, WarnsOfASchedulesThatCanHardlyBeMeant) {
  const auto warnings = [](const std::string& optimizer, const std::string& steps) {
    return schedule_warnings(parse("[run]\nsteps = " + steps + "\n[optimizer]\n" + optimizer));
  };
  const auto all_warm_up = warnings("warmup_steps = 2000", "10");
  ASSERT_EQ(all_warm_up.size(), 1u);
  EXPECT_NE(all_warm_up.front().find("ends at 1.5e-06"), std::string::npos) << all_warm_up.front();
  EXPECT_NE(all_warm_up.front().find("--set optimizer.warmup_steps=1"), std::string::npos);
  const auto early = warnings("warmup_steps = 10\ndecay_steps = 90", "1000");
  ASSERT_EQ(early.size(), 1u);
  EXPECT_NE(early.front().find("by step 100 of 1000"), std::string::npos) << early.front();
  // Also where nobody set it, as in the config.toml of a run that goes on for longer.
  EXPECT_NE(early.front().find("--set optimizer.decay_steps=990 in place of 90"),
            std::string::npos);
  EXPECT_TRUE(warnings("warmup_steps = 10\ndecay_steps = 990", "1000").empty());
  EXPECT_TRUE(warnings("schedule = \"constant\"\nwarmup_steps = 10", "1000").empty());
}

// The original runs of these models: 2,000 steps of warm-up, a decay over 480,000, 500,000 in all.
TEST(ShippedConfigurations, AreTheOriginalRuns) {
  const std::string folder = std::string(kSourceFolder) + "/configs/";
  struct Case {
    const char* file;
    const char* recompute;
    double learning_rate;
  };
  for (const Case& one :
       {Case{"llama2-7b-trn1-4096", "selective", 3e-4}, Case{"llama2-13b-trn1", "selective", 3e-4},
        Case{"llama2-70b-trn1-tp32-pp4", "selective", 1.5e-4},
        Case{"llama2-70b-trn1-tp8-pp8", "full", 1.5e-4}}) {
    SCOPED_TRACE(one.file);
    const Config config = load_config(folder + one.file + ".toml", {}, ConfigUse::kPlan);
    EXPECT_EQ(config.run.steps, 500'000);
    EXPECT_EQ(config.optimizer.warmup_steps, 2000);
    EXPECT_EQ(config.optimizer.constant_steps, 0);
    EXPECT_EQ(config.optimizer.decay_steps, 480'000);
    EXPECT_EQ(config.optimizer.learning_rate, one.learning_rate);
    EXPECT_DOUBLE_EQ(config.optimizer.min_learning_rate, one.learning_rate / 10);
    EXPECT_EQ(config.optimizer.epsilon, 1e-5);
    EXPECT_EQ(config.optimizer.beta2, 0.95);
    EXPECT_EQ(config.optimizer.weight_decay, 0.1);
    EXPECT_TRUE(config.optimizer.decay_norms);
    EXPECT_EQ(config.optimizer.clip_norm, 1.0);
    EXPECT_EQ(config.batch.global_sequences, 1024);
    EXPECT_EQ(config.data.sequence_length, 4096);
    EXPECT_EQ(config.memory.recompute, one.recompute);
    EXPECT_TRUE(run_length_notes(config).empty());
    EXPECT_TRUE(schedule_warnings(config).empty());
  }
  for (const char* file : {"llama2-7b-h200", "demo"}) {
    const Config config = load_config(folder + file + ".toml", {}, ConfigUse::kPlan);
    EXPECT_TRUE(run_length_notes(config).empty()) << file;
    EXPECT_TRUE(schedule_warnings(config).empty()) << file;
  }
}

}  // namespace
}  // namespace skein
