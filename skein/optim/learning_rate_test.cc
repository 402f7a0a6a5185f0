#include "skein/optim/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "tests/places.h"

namespace skein {
namespace {

LearningRateDecay decay_named(const std::string& name) {
  if (name == "cosine") return LearningRateDecay::kCosine;
  return name == "linear" ? LearningRateDecay::kLinear : LearningRateDecay::kConstant;
}

TEST(LearningRate, FollowsTheRecipeOfTheSeeds) {
  const LearningRateSchedule schedule{LearningRateDecay::kCosine, 3e-4, 3e-5, 2000, 0, 480000};
  EXPECT_FLOAT_EQ(schedule.at(1), 1.5e-7f);
  EXPECT_FLOAT_EQ(schedule.at(1000), 1.5e-4f);
  EXPECT_FLOAT_EQ(schedule.at(2000), 3e-4f);
  EXPECT_FLOAT_EQ(schedule.at(2000 + 160000), 2.325e-4f);  // cos(pi/3) = 1/2
  EXPECT_FLOAT_EQ(schedule.at(2000 + 240000), 1.65e-4f);
  EXPECT_FLOAT_EQ(schedule.at(2000 + 320000), 0.975e-4f);
  EXPECT_FLOAT_EQ(schedule.at(482000), 3e-5f);
  EXPECT_FLOAT_EQ(schedule.at(500000), 3e-5f);
}

TEST(LearningRate, HoldsThePeakForTheConstantSteps) {
  const LearningRateSchedule schedule{LearningRateDecay::kLinear, 1.0, 0.5, 4, 3, 10};
  const float expected[] = {0.25f, 0.5f, 0.75f, 1.0f, 1.0f, 1.0f, 1.0f, 0.95f, 0.9f, 0.85f};
  for (int step = 1; step <= 10; ++step) EXPECT_FLOAT_EQ(schedule.at(step), expected[step - 1]);
  EXPECT_FLOAT_EQ(schedule.at(17), 0.5f);
  EXPECT_FLOAT_EQ(schedule.at(1'000'000'000), 0.5f);
}

TEST(LearningRate, StartsAtThePeakWithoutWarmup) {
  const LearningRateSchedule schedule{LearningRateDecay::kCosine, 1.0, 0.0, 0, 1, 2};
  EXPECT_FLOAT_EQ(schedule.at(1), 1.0f);
  EXPECT_FLOAT_EQ(schedule.at(2), 0.5f);
  EXPECT_FLOAT_EQ(schedule.at(3), 0.0f);
}

TEST(LearningRate, DropsToTheFloorWithoutDecaySteps) {
  const LearningRateSchedule schedule{LearningRateDecay::kCosine, 1.0, 0.25, 2, 1, 0};
  EXPECT_FLOAT_EQ(schedule.at(3), 1.0f);
  EXPECT_FLOAT_EQ(schedule.at(4), 0.25f);
}

TEST(LearningRate, RefusesAStepBeforeTheFirst) {
  EXPECT_THROW(LearningRateSchedule{}.at(0), Error);
}

TEST(LearningRate, EqualsTorchAndTransformers) {
  const auto golden =
      std::filesystem::path(kSourceFolder) / "skein/optim/testdata/learning_rate.json";
  int num_rates = 0;
  for (const Json& row : read_json(golden.string())) {
    const LearningRateSchedule schedule{
        decay_named(row.at("decay")), row.at("peak"),           row.at("floor"),
        row.at("warmup_steps"),       row.at("constant_steps"), row.at("decay_steps")};
    for (const Json& rate : row.at("rates")) {
      const double expected = rate.at(1);
      EXPECT_NEAR(schedule.at(rate.at(0)), expected, 1e-7 * expected + 1e-18)
          << row.at("schedule") << " step " << rate.at(0);
      ++num_rates;
    }
  }
  EXPECT_EQ(num_rates, 109);
}

}  // namespace
}  // namespace skein
