#include "skein/data/lanes/skipped_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

// Against the definition: the s-th number that is not in the set.
TEST(SkippedBatches, AgreeWithASet) {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    SkippedBatches skipped;
    std::set<int64_t> expected;
    for (uint64_t count = random() % 6; count > 0; --count) {
      const auto first = static_cast<int64_t>(1 + random() % 30);
      const auto last = first + static_cast<int64_t>(random() % 6);
      skipped.add(first, last);
      for (int64_t batch = first; batch <= last; ++batch) expected.insert(batch);
    }
    int64_t step = 0;
    for (int64_t batch = 1; batch < 50; ++batch) {
      ASSERT_EQ(skipped.contains(batch), expected.contains(batch)) << skipped.text();
      ASSERT_EQ(skipped.steps_before(batch), step) << skipped.text();
      if (expected.contains(batch)) continue;
      ASSERT_EQ(skipped.batch_of(++step), batch) << skipped.text();
    }
    EXPECT_EQ(skipped.batch_of(0), 0);
    EXPECT_EQ(SkippedBatches::parse(skipped.text()), skipped);
    EXPECT_EQ(SkippedBatches::from_json(skipped.to_json(), "test"), skipped);
  }
}

TEST(SkippedBatches, FindsWhatAnotherListHasBeside) {
  const SkippedBatches own = SkippedBatches::parse("3, 10-12");
  const auto lacking = [&](const char* others, int64_t last) {
    return own.first_lacking(SkippedBatches::parse(others), last);
  };
  EXPECT_EQ(lacking("", 99), std::nullopt);
  EXPECT_EQ(lacking("3, 11", 99), std::nullopt);
  EXPECT_EQ(lacking("3-4", 99), 4);
  EXPECT_EQ(lacking("9-12", 99), 9);
  EXPECT_EQ(lacking("10-14", 12), std::nullopt);
  EXPECT_EQ(lacking("10-14", 13), 13);
  EXPECT_EQ(lacking("50", 49), std::nullopt);
}

TEST(SkippedBatches, TextForms) {
  EXPECT_EQ(SkippedBatches::parse(" 40 - 44,17 ,18").text(), "17-18, 40-44");
  EXPECT_TRUE(SkippedBatches::parse(" ").empty());
  for (const char* text : {"0", "-3", "5-4", "1,,2", "x", "1 2", "1-2-3", "99999999999999999999"}) {
    EXPECT_THAT(error_of([&] { SkippedBatches::parse(text); }),
                HasSubstr("expected numbers from 1"))
        << text;
  }
  for (const char* json : {"{}", "[1]", "[[1]]", "[[0, 1]]", "[[2, 1]]", "[[1, 2], [3, 4]]",
                           "[[5, 5], [1, 1]]", "[[-1, 4]]", "[[1.5, 2]]"}) {
    EXPECT_THAT(error_of([&] { SkippedBatches::from_json(Json::parse(json), "here"); }),
                HasSubstr("here: found"))
        << json;
  }
}

}  // namespace
}  // namespace skein
