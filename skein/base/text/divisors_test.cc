#include "skein/base/text/divisors.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(Divisors, MultiplesOnBothSides) {
  EXPECT_EQ(multiples_near(10, 4), "8 or 12");
  EXPECT_EQ(multiples_near(3, 4), "4");
  EXPECT_EQ(multiples_near(5, 4), "4 or 8");
}

TEST(Divisors, OnBothSides) {
  EXPECT_EQ(divisors_near(5, 64), "4 or 8");
  EXPECT_EQ(divisors_near(100, 64), "64");
  EXPECT_EQ(divisors_near(6, 7), "1 or 7");
  EXPECT_EQ(divisors_near(7, 36), "6 or 9");
}

TEST(Divisors, NotBelow) {
  EXPECT_EQ(divisor_from(3, 8), 4);
  EXPECT_EQ(divisor_from(4, 8), 4);
  EXPECT_EQ(divisor_from(9, 8), 0);
  EXPECT_EQ(divisor_from(7, 36), 9);
}

}  // namespace
}  // namespace skein
