#include "skein/train/spikes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "skein/base/error.h"

namespace skein {
namespace {

SpikeDetector warmed_up(float norm = 1.0f) {
  SpikeDetector detector;
  for (int step = 0; step < SpikeDetector::kWindow; ++step) {
    EXPECT_EQ(detector.observe(norm).spike_steps, 0);
  }
  return detector;
}

TEST(Spikes, TheFirstWindowIsNotJudged) {
  SpikeDetector detector;
  for (int step = 0; step < SpikeDetector::kWindow; ++step) {
    const auto verdict = detector.observe(step == 10 ? 50.0f : 1.0f);
    EXPECT_EQ(verdict.spike_steps, 0);
    EXPECT_EQ(verdict.alarm, "");
  }
  EXPECT_FLOAT_EQ(detector.observe(1.0f).mean, 69.0f / 20);
}

TEST(Spikes, CountsByLength) {
  SpikeDetector detector = warmed_up();
  EXPECT_EQ(detector.observe(1.09f).spike_steps, 0);  // under r + 0.1
  EXPECT_EQ(detector.observe(1.5f).spike_steps, 1);
  EXPECT_EQ(detector.observe(1.0f).recovered_steps, 1);
  EXPECT_EQ(detector.observe(1.5f).spike_steps, 1);
  EXPECT_EQ(detector.observe(1.5f).spike_steps, 2);
  EXPECT_EQ(detector.spike_steps(), 2);
  EXPECT_EQ(detector.observe(1.0f).recovered_steps, 2);
  EXPECT_EQ(detector.observe(1.0f).recovered_steps, 0);
  EXPECT_EQ(detector.counts_by_length(), (std::map<int64_t, int64_t>{{1, 1}, {2, 1}}));
}

TEST(Spikes, TheMeanFollowsTheLastTwentySteps) {
  SpikeDetector detector = warmed_up(0.0f);
  for (int step = 1; step <= 20; ++step) {
    EXPECT_FLOAT_EQ(detector.observe(1.0f).mean, static_cast<float>(step - 1) / 20);
  }
  EXPECT_FLOAT_EQ(detector.observe(1.0f).mean, 1.0f);
  // 1 > r + 0.1 holds while r < 0.9, that is for 18 steps.
  EXPECT_EQ(detector.counts_by_length(), (std::map<int64_t, int64_t>{{18, 1}}));
}

TEST(Spikes, AlarmsOnceWhenTheNormHasGrownThreefold) {
  SpikeDetector detector = warmed_up();
  EXPECT_EQ(detector.observe(2.9f).alarm, "");
  EXPECT_NE(detector.observe(3.1f).alarm.find("past 3 times"), std::string::npos);
  EXPECT_EQ(detector.observe(3.2f).alarm, "");  // the same one
  EXPECT_EQ(detector.observe(1.0f).alarm, "");
  EXPECT_NE(detector.observe(3.1f).alarm, "");
}

TEST(Spikes, AlarmsWhenASpikeLasts) {
  SpikeDetector detector = warmed_up();
  for (int step = 1; step < SpikeDetector::kPersistentSteps; ++step) {
    EXPECT_EQ(detector.observe(2.0f).alarm, "");
  }
  EXPECT_NE(detector.observe(2.0f).alarm.find("for 5 steps"), std::string::npos);
  EXPECT_EQ(detector.observe(2.0f).alarm, "");
}

TEST(Spikes, WhatIsNotFiniteAlarmsAndStaysOutOfTheMean) {
  SpikeDetector detector;
  EXPECT_NE(detector.observe(std::nanf("")).alarm, "");
  EXPECT_EQ(detector.observe(std::numeric_limits<float>::infinity()).spike_steps, 2);
  EXPECT_EQ(detector.observe(1.0f).recovered_steps, 2);
  for (int step = 1; step < SpikeDetector::kWindow; ++step) detector.observe(1.0f);
  EXPECT_FLOAT_EQ(detector.observe(1.0f).mean, 1.0f);
}

TEST(Spikes, StateReadsBackIdentically) {
  std::mt19937 random(3);
  std::normal_distribution<float> norm(1.0f, 0.3f);
  SpikeDetector detector;
  for (int step = 0; step < 200; ++step) {
    SpikeDetector resumed =
        SpikeDetector::from_json(parse_json(detector.to_json().dump(), "state"));
    ASSERT_EQ(resumed, detector);
    const float value = step % 50 == 49 ? std::nanf("") : norm(random);
    detector.observe(value);
    resumed.observe(value);
    ASSERT_EQ(resumed, detector);
  }
  EXPECT_FALSE(detector.counts_by_length().empty());
}

TEST(Spikes, RefusesACorruptState) {
  Json too_long = SpikeDetector().to_json();
  too_long["window"] = std::vector<float>(21, 1.0f);
  EXPECT_THROW(SpikeDetector::from_json(too_long), Error);
  EXPECT_THROW(SpikeDetector::from_json(Json::object()), Error);
  EXPECT_THROW(SpikeDetector::from_json(Json::array()), Error);
}

}  // namespace
}  // namespace skein
