#include "skein/base/text/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace skein {
namespace {

TEST(Units, ShortDurations) {
  EXPECT_EQ(format_short_duration(0), "0 s");
  EXPECT_EQ(format_short_duration(38.06e-6), "38.1 us");
  EXPECT_EQ(format_short_duration(0.9994e-3), "999 us");
  EXPECT_EQ(format_short_duration(0.9996e-3), "1.00 ms");
  EXPECT_EQ(format_short_duration(9.5e-3), "9.50 ms");
  EXPECT_EQ(format_short_duration(0.875), "875 ms");
  EXPECT_EQ(format_short_duration(0.9996), "1.00 s");
  EXPECT_EQ(format_short_duration(1.234), "1.23 s");
  EXPECT_EQ(format_short_duration(48.6), "48.6 s");
  EXPECT_EQ(format_short_duration(245), "4 min 05 s");
  EXPECT_EQ(format_short_duration(std::numeric_limits<double>::infinity()), "?");
}

}  // namespace
}  // namespace skein
