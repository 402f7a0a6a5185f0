#include "skein/base/numbers/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace skein {
namespace {

using Bins = std::array<double, exact_sum::kBins>;

Bins bins_of(const std::vector<double>& terms) {
  Bins bins{};
  for (const double term : terms) exact_sum::add(bins.data(), term);
  return bins;
}

double total(const std::vector<double>& terms) { return exact_sum::total(bins_of(terms).data()); }

// Magnitudes over the whole range, with both signs.
std::vector<double> wild_terms(int count, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> terms;
  for (int i = 0; i < count; ++i) {
    const double fraction = std::uniform_real_distribution<double>(-1, 1)(random);
    terms.push_back(std::ldexp(fraction, static_cast<int>(random() % 500) - 240));
  }
  return terms;
}

TEST(ExactSum, OneTermIsKeptWhole) {
  for (const double term : {1.0, -1.0, 0x1.fffffffffffffp0, 1.0 / 3, 0x1p-298, -0x1.fffffep277,
                            0x1.123456789abcdp200, -0x1.fedcba9876543p-100, 0.0}) {
    EXPECT_EQ(total({term}), term);
  }
  for (const double term : wild_terms(10000, 1)) ASSERT_EQ(total({term}), term);
}

TEST(ExactSum, SmallTermsSurviveLargeOnes) {
  EXPECT_EQ(total({0x1p270, 1.0, 0x1p-200, -0x1p270}), 1.0);
  EXPECT_EQ(total({0x1p270, 0x1p-298, -0x1p270}), 0x1p-298);
  std::vector<double> terms(1000, 0x1p-60);
  terms.insert(terms.begin(), 1.0);
  terms.push_back(-1.0);
  EXPECT_EQ(total(terms), 1000 * 0x1p-60);
}

TEST(ExactSum, NeitherOrderNorGroupingMatters) {
  std::vector<double> terms = wild_terms(5000, 2);
  const Bins want = bins_of(terms);
  std::mt19937 random(3);
  for (int trial = 0; trial < 5; ++trial) {
    std::shuffle(terms.begin(), terms.end(), random);
    EXPECT_EQ(bins_of(terms), want);
    const auto cut = terms.begin() + 1 + static_cast<int>(random() % 4000);
    Bins head = bins_of({terms.begin(), cut});
    const Bins tail = bins_of({cut, terms.end()});
    exact_sum::add_all(head.data(), tail.data());
    EXPECT_EQ(head, want);
  }
}

TEST(ExactSum, MeetsALongSum) {
  std::mt19937_64 random(4);
  std::vector<double> terms;
  __extension__ __int128 want = 0;  // in units of 2^-60
  for (int i = 0; i < 100000; ++i) {
    const auto unit = static_cast<int64_t>(random() >> 11);
    want += unit;
    terms.push_back(static_cast<double>(unit) * 0x1p-60);
  }
  EXPECT_NEAR(total(terms), static_cast<double>(want) * 0x1p-60, 1e-15 * total(terms));
}

// 2^29 terms with the most that a bin takes of one term, as partial sums would bring them.
TEST(ExactSum, ABinHoldsTwoToThe29Terms) {
  Bins bins{};
  exact_sum::add(bins.data(), 0x1.ffffffp0);
  for (int doubling = 0; doubling < 29; ++doubling) {
    const Bins same = bins;
    exact_sum::add_all(bins.data(), same.data());
  }
  EXPECT_EQ(exact_sum::total(bins.data()), 0x1.ffffffp29);
  exact_sum::add(bins.data(), 0x1p-20);
  exact_sum::add(bins.data(), -0x1p29 * 0x1.ffffffp0);
  EXPECT_EQ(exact_sum::total(bins.data()), 0x1p-20);
}

TEST(ExactSum, WhatIsNotFiniteMakesTheTotalNaN) {
  for (const double term : {HUGE_VAL, -HUGE_VAL, std::nan(""), 0x1p278}) {
    EXPECT_TRUE(std::isnan(total({1.0, term, 2.0}))) << term;
    EXPECT_TRUE(std::isnan(total({HUGE_VAL, term}))) << term;
    Bins others = bins_of({term}), bins = bins_of({1.0});
    exact_sum::add_all(bins.data(), others.data());
    EXPECT_TRUE(std::isnan(exact_sum::total(bins.data()))) << term;
  }
}

}  // namespace
}  // namespace skein
