#include "skein/plan/search/fastest_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Planned {
  BoundOrder bound;
  double seconds;
};

SearchResult::FoundLayout found(const Planned& planned) {
  SearchResult::FoundLayout found;
  found.plan.step.step_seconds = planned.seconds;
  found.order = planned.bound.second;
  return found;
}

std::vector<double> seconds_of(FastestPlans& plans) {
  std::vector<double> seconds;
  for (const SearchResult::FoundLayout& one : plans.take_list()) {
    seconds.push_back(one.plan.step.step_seconds);
  }
  return seconds;
}

// The one of 2.5 s has a bound of 4 s, which is none: only where it is planned early could it be in
// the list.
TEST(FastestPlans, AreTheSameInEveryOrder) {
  std::vector<Planned> all = {{{1, 0}, 2}, {{2, 1}, 3}, {{2.5, 2}, 3.5}, {{4, 3}, 2.5}};
  do {
    FastestPlans plans(2);
    std::vector<BoundOrder> left;
    for (const Planned& one : all) left.push_back(one.bound);
    for (const Planned& one : all) {
      if (one.bound.first > plans.slowest_seconds()) continue;  // as the search leaves it out
      plans.add(one.bound, found(one));
      left.erase(std::find(left.begin(), left.end(), one.bound));
      plans.decide(left.empty() ? kBehindAll : *std::min_element(left.begin(), left.end()));
    }
    EXPECT_THAT(seconds_of(plans), ElementsAre(2, 3));
  } while (std::next_permutation(all.begin(), all.end(),
                                 [](const auto& a, const auto& b) { return a.bound < b.bound; }));
}

TEST(FastestPlans, WaitForLayoutsWithSmallerBounds) {
  FastestPlans plans(1);
  plans.add({2, 1}, found({{2, 1}, 3}));
  plans.decide({1, 0});
  EXPECT_EQ(plans.slowest_seconds(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(plans.fastest_seconds(), 3);
  plans.decide({2.5, 2});
  EXPECT_EQ(plans.slowest_seconds(), 3);
}

TEST(FastestPlans, OfASearchThatIsStoppedAreTheFastestOfAllThatWerePlanned) {
  FastestPlans plans(2);
  for (const Planned& one : {Planned{{5, 0}, 6}, Planned{{5, 1}, 5.5}, Planned{{5, 2}, 7}}) {
    plans.add(one.bound, found(one));
  }
  plans.decide({1, 3});
  EXPECT_THAT(seconds_of(plans), IsEmpty());
  plans.decide_all();
  EXPECT_THAT(seconds_of(plans), ElementsAre(5.5, 6));
}

TEST(FastestPlans, OfEqualTimesAreThoseOfTheSmallerNumber) {
  FastestPlans plans(1);
  for (const int64_t order : {2, 0, 1}) {
    plans.add({1, order}, found({{1, order}, 2}));
  }
  plans.decide(kBehindAll);
  EXPECT_EQ(plans.take_list().front().order, 0);
}

}  // namespace
}  // namespace skein
