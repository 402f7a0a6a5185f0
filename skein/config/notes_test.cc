#include "skein/config/notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(SettingsWithoutEffect, FastAccumulationIsOfEightBits) {
  Config config;
  EXPECT_TRUE(settings_without_effect(config, 0, true).empty());
  config.precision.fast_accumulation = true;
  EXPECT_THAT(
      settings_without_effect(config, 0, true),
      testing::ElementsAre("precision.fast_accumulation = true has no effect: precision.mode is "
                           "\"bf16-sr\", not \"fp8\""));
  config.precision.mode = "fp8";
  EXPECT_TRUE(settings_without_effect(config, 0, true).empty());
}

TEST(SettingsWithoutEffect, ARatioBesideAFloorThatIsSet) {
  Config config = parse_config(
      "[optimizer]\nmin_learning_rate = 1e-6\nmin_learning_rate_ratio = 0.2\n", "run.toml");
  EXPECT_THAT(settings_without_effect(config, 0, true),
              testing::ElementsAre("optimizer.min_learning_rate_ratio = 0.2 has no effect: "
                                   "min_learning_rate is set, to 1e-06"));
  config = parse_config("[optimizer]\nmin_learning_rate_ratio = 0.2\n", "run.toml");
  EXPECT_TRUE(settings_without_effect(config, 0, true).empty());
}

TEST(SettingsWithoutEffect, SumsOfACpuHaveOneOrder) {
  Config config;
  config.precision.repeatable = false;
  EXPECT_TRUE(settings_without_effect(config, 0, true).empty());
  config.device.kind = "cpu";
  EXPECT_THAT(settings_without_effect(config, 0, true),
              testing::ElementsAre(testing::StartsWith(
                  "precision.repeatable = false has no effect: device.kind is \"cpu\"")));
}

TEST(SettingsWithoutEffect, KeptWeightsAreOfEightBitsAndOfWholeOnes) {
  Config config;
  config.memory.keep_fp8_weights = false;
  EXPECT_THAT(
      settings_without_effect(config, 0, true),
      testing::ElementsAre("memory.keep_fp8_weights = false has no effect: precision.mode is "
                           "\"bf16-sr\", not \"fp8\""));
  config.precision.mode = "fp8";
  EXPECT_TRUE(settings_without_effect(config, 0, true).empty());
  config.memory.keep_fp8_weights = true;
  EXPECT_TRUE(settings_without_effect(config, 0, true).empty());
  config.parallel.zero = 3;
  EXPECT_THAT(settings_without_effect(config, 0, true),
              testing::ElementsAre(testing::StartsWith(
                  "memory.keep_fp8_weights = true has no effect: with parallel.zero = 3")));
}

TEST(SettingsWithoutEffect, AStepIsTracedThatTheRunComesTo) {
  Config config;
  config.run.steps = 10;
  config.log.trace_step = 10;
  EXPECT_TRUE(settings_without_effect(config, 9, true).empty());
  EXPECT_THAT(settings_without_effect(config, 10, true),
              testing::ElementsAre("log.trace_step = 10 has no effect: the run continues from step "
                                   "10"));
  config.log.trace_step = 11;
  EXPECT_THAT(settings_without_effect(config, 0, true),
              testing::ElementsAre("log.trace_step = 11 has no effect: run.steps is 10"));
}

}  // namespace
}  // namespace skein
