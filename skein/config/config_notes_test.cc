#include "skein/config/config_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(SettingsWithoutEffect, FastAccumulationIsOfEightBits) {
  Config config;
  EXPECT_TRUE(settings_without_effect(config, true).empty());
  config.precision.fast_accumulation = true;
  EXPECT_THAT(
      settings_without_effect(config, true),
      testing::ElementsAre("precision.fast_accumulation = true has no effect: precision.mode is "
                           "\"bf16-sr\", not \"fp8\""));
  config.precision.mode = "fp8";
  EXPECT_TRUE(settings_without_effect(config, true).empty());
}

TEST(SettingsWithoutEffect, SumsOfACpuHaveOneOrder) {
  Config config;
  config.precision.repeatable = false;
  EXPECT_TRUE(settings_without_effect(config, true).empty());
  config.device.kind = "cpu";
  EXPECT_THAT(settings_without_effect(config, true),
              testing::ElementsAre(testing::StartsWith(
                  "precision.repeatable = false has no effect: device.kind is \"cpu\"")));
}

TEST(SettingsWithoutEffect, KeptWeightsAreOfEightBitsAndOfWholeOnes) {
  Config config;
  config.memory.keep_fp8_weights = false;
  EXPECT_THAT(
      settings_without_effect(config, true),
      testing::ElementsAre("memory.keep_fp8_weights = false has no effect: precision.mode is "
                           "\"bf16-sr\", not \"fp8\""));
  config.precision.mode = "fp8";
  EXPECT_TRUE(settings_without_effect(config, true).empty());
  config.memory.keep_fp8_weights = true;
  EXPECT_TRUE(settings_without_effect(config, true).empty());
  config.parallel.zero = 3;
  EXPECT_THAT(settings_without_effect(config, true),
              testing::ElementsAre(testing::StartsWith(
                  "memory.keep_fp8_weights = true has no effect: with parallel.zero = 3")));
}

}  // namespace
}  // namespace skein
