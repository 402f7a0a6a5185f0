#include "skein/record/report/html/thin_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace skein {
namespace {

std::vector<float> wave(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i) / 500);
  return values;
}

bool stays(const ThinnedCurve& curve, size_t row) {
  return std::binary_search(curve.rows.begin(), curve.rows.end(), row);
}

TEST(ThinCurve, AShortCurveStaysWhole) {
  const ThinnedCurve curve = thin_curve(wave(2000));
  EXPECT_EQ(curve.rows.size(), 2000u);
  EXPECT_TRUE(curve.means.empty());
  EXPECT_TRUE(thin_curve({}).rows.empty());
}

TEST(ThinCurve, SpikesOfOneStepStay) {
  std::vector<float> values = wave(100'003);
  for (const size_t row : {777u, 50'001u, 99'998u}) values[row] = 40;
  values[60'000] = -40;
  const ThinnedCurve curve = thin_curve(values);
  EXPECT_LE(curve.rows.size(), kMostCurvePoints);
  EXPECT_GT(curve.rows.size(), kMostCurvePoints / 2);
  EXPECT_TRUE(std::is_sorted(curve.rows.begin(), curve.rows.end()));
  for (const size_t row : {0u, 777u, 50'001u, 60'000u, 99'998u, 100'002u}) {
    EXPECT_TRUE(stays(curve, row)) << row;
  }
}

// Each value lies between the lowest and the highest of those that stay of its bucket.
TEST(ThinCurve, WhatIsLeftOutLiesBetweenWhatStays) {
  const std::vector<float> values = wave(10'000);
  const ThinnedCurve curve = thin_curve(values, 202);
  for (size_t bucket = 0; bucket < 100; ++bucket) {
    float lowest = std::numeric_limits<float>::infinity(), highest = -lowest;
    for (const size_t row : curve.rows) {
      if (row / 100 != bucket) continue;
      lowest = std::min(lowest, values[row]);
      highest = std::max(highest, values[row]);
    }
    for (size_t row = bucket * 100; row < bucket * 100 + 100; ++row) {
      ASSERT_GE(values[row], lowest) << row;
      ASSERT_LE(values[row], highest) << row;
    }
  }
}

TEST(ThinCurve, MeansAreOfAllFiniteValuesOfABucket) {
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 10 == 0 ? 10 : 1);
  values[5] = std::nanf("");
  const ThinnedCurve curve = thin_curve(values, 302);  // of 10 each
  ASSERT_EQ(curve.means.size(), 100u);
  EXPECT_FLOAT_EQ(curve.means[0].mean, 18.0f / 9);
  EXPECT_FLOAT_EQ(curve.means[1].mean, 1.9f);
  EXPECT_EQ(curve.means[1].row, 15u);
}

TEST(ThinCurve, ValuesThatAreNotFiniteBreakIt) {
  std::vector<float> values = wave(50'000);
  for (size_t i = 20'000; i < 30'000; ++i) values[i] = std::nanf("");
  values[40'000] = std::numeric_limits<float>::infinity();
  const ThinnedCurve curve = thin_curve(values);
  EXPECT_LE(curve.rows.size(), kMostCurvePoints);
  EXPECT_TRUE(stays(curve, 40'000));
  const auto in_gap = std::count_if(curve.rows.begin(), curve.rows.end(),
                                    [](size_t row) { return row >= 20'000 && row < 30'000; });
  EXPECT_GT(in_gap, 0);
  const std::vector<float> none(5000, std::nanf(""));
  EXPECT_TRUE(thin_curve(none).means.empty());
}

}  // namespace
}  // namespace skein
