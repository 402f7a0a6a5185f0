// Small clusters whose time can be reckoned by hand.
#include "skein/supervise/goodput/goodput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace skein {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Le;

// An hour of 10 machines, in steps of 2 s that are all copied; a checkpoint after every 100.
GoodputOptions small() {
  GoodputOptions options;
  options.hosts = 10;
  options.spares = 4;
  options.duration = 3'600'000;
  options.step = 2'000;
  options.save_every = 100;
  options.save = 10;
  options.save_write = 1'000;
  options.copy_every = 1;
  options.copy = 5;
  options.start_memory = 10'000;
  options.start_storage = 30'000;
  return options;
}

GoodputOptions with_failure(FailureEffect effect, bool replaced, int count = 1) {
  GoodputOptions options = small();
  options.failures = {{"a planted one", effect, replaced, count}};
  return options;
}

Millis sum_of_parts(const GoodputResult& result) {
  return result.productive + result.saving + result.replicating + result.redone + result.starting +
         result.detecting + result.recovering + result.waiting;
}

TEST(Goodput, WithoutFailuresOnlyStartAndCopiesCost) {
  const GoodputResult result = simulate_goodput(small());
  EXPECT_EQ(sum_of_parts(result), result.duration);
  EXPECT_EQ(result.generations, 1);
  // The checks of 0.3 s, a generation, and workers that read the checkpoint: 30 s.
  EXPECT_THAT(result.starting, AllOf(Ge(30'300), Le(31'000)));
  const int64_t steps = (3'600'000 - result.starting) / 2'005;
  EXPECT_EQ(result.steps, steps);
  EXPECT_EQ(result.productive, steps * 2'000);
  EXPECT_EQ(result.replicating, steps * 5);
  EXPECT_EQ(result.saving, steps / 100 * 10);
  EXPECT_EQ(result.redone + result.detecting + result.recovering + result.waiting, 0);
}

TEST(Goodput, ACrashCostsAStartFromMemoryAndTheStepsSinceTheCopy) {
  const GoodputResult result = simulate_goodput(with_failure(FailureEffect::kCrash, false));
  EXPECT_EQ(sum_of_parts(result), result.duration);
  EXPECT_EQ(result.generations, 2);
  EXPECT_EQ(result.replaced, 0);
  EXPECT_EQ(result.from_storage, 0);
  EXPECT_LE(result.redone, 2'005);     // the copy that was not whole on its peer yet
  EXPECT_LE(result.detecting, 2'030);  // the step that it cut is in it
  ASSERT_EQ(result.pauses.size(), 1U);
  // The others read of it with their next exchange, 1 s, end within 1 s; then 10 s for the start.
  EXPECT_THAT(result.pauses[0], AllOf(Ge(10'500), Le(14'000)));
}

TEST(Goodput, WithoutCopiesTheStepsSinceTheCheckpointAreLost) {
  GoodputOptions options = with_failure(FailureEffect::kCrash, false);
  options.copy_every = 0;
  const GoodputResult result = simulate_goodput(options);
  EXPECT_EQ(sum_of_parts(result), result.duration);
  EXPECT_EQ(result.from_storage, 1);
  EXPECT_GT(result.redone, 2'005);
  EXPECT_LE(result.redone, 100 * 2'000 + 1'000 + 10);
  EXPECT_THAT(result.pauses, testing::ElementsAre(AllOf(Ge(30'500), Le(34'000))));
}

TEST(Goodput, AMachineIsMissedAfterItsSilenceAndItsPlaceTaken) {
  const GoodputResult result = simulate_goodput(with_failure(FailureEffect::kLost, true));
  EXPECT_EQ(sum_of_parts(result), result.duration);
  EXPECT_EQ(result.replaced, 1);
  EXPECT_THAT(result.detections, testing::ElementsAre(AllOf(Ge(9'000), Le(12'500))));
}

TEST(Goodput, ACollectiveThatHangsIsOverAfterItsDeadline) {
  GoodputOptions options = with_failure(FailureEffect::kHang, false);
  options.collective_timeout = 40'000;
  const GoodputResult result = simulate_goodput(options);
  EXPECT_EQ(sum_of_parts(result), result.duration);
  EXPECT_EQ(result.replaced, 0);
  EXPECT_THAT(result.detections, testing::ElementsAre(AllOf(Ge(40'000), Le(40'030))));
}

TEST(Goodput, ASickMachineIsReplacedByASpare) {
  const GoodputResult result = simulate_goodput(with_failure(FailureEffect::kCrash, true));
  EXPECT_EQ(result.replaced, 1);
  EXPECT_EQ(result.waiting, 0);
  EXPECT_EQ(result.generations, 2);
}

TEST(Goodput, WithoutASpareTheRunWaitsForTheRepair) {
  GoodputOptions options = with_failure(FailureEffect::kLost, true);
  options.spares = 0;
  options.repair = 300'000;
  const GoodputResult result = simulate_goodput(options);
  EXPECT_EQ(sum_of_parts(result), result.duration);
  EXPECT_THAT(result.waiting, AllOf(Ge(280'000), Le(301'000)));
}

TEST(Goodput, APlannedStopLosesNoStep) {
  const GoodputResult result = simulate_goodput(with_failure(FailureEffect::kAsked, true));
  EXPECT_EQ(sum_of_parts(result), result.duration);
  EXPECT_EQ(result.redone, 0);
  EXPECT_EQ(result.replaced, 1);
  EXPECT_EQ(result.generations, 2);
  EXPECT_TRUE(result.detections.empty());
}

TEST(Goodput, ByHandEveryFailureWaitsForAPerson) {
  GoodputOptions options = with_failure(FailureEffect::kCrash, false);
  options.supervisor.membership.max_restarts = 0;
  options.by_hand = 600'000;
  const GoodputResult result = simulate_goodput(options);
  EXPECT_EQ(sum_of_parts(result), result.duration);
  EXPECT_EQ(result.ends, 1);
  EXPECT_EQ(result.waiting, 600'000);
  EXPECT_EQ(result.from_storage, 1);
}

TEST(Goodput, ASeedGivesTheSameResult) {
  GoodputOptions options = with_failure(FailureEffect::kCrash, true, 5);
  const GoodputResult once = simulate_goodput(options);
  const GoodputResult again = simulate_goodput(options);
  EXPECT_EQ(once.pauses, again.pauses);
  EXPECT_EQ(once.events, again.events);
  options.seed = 2;
  EXPECT_NE(once.pauses, simulate_goodput(options).pauses);
}

// Machines that are alike may be one: to the tenth of a second it makes no difference to a pause
// whether the store has one record for them, or one each.
TEST(Goodput, ARecordForEachOfThoseThatAreAlikeChangesNothing) {
  GoodputOptions options = small();
  options.failures = scaled(llama3_failures(), 6);
  const GoodputResult one = simulate_goodput(options);
  options.all_records = true;
  const GoodputResult each = simulate_goodput(options);
  EXPECT_EQ(one.generations, each.generations);
  EXPECT_EQ(one.replaced, each.replaced);
  EXPECT_EQ(one.events, each.events);
  EXPECT_EQ(one.pauses, each.pauses);
}

TEST(Goodput, AHundredMachinesForTenDays) {
  GoodputOptions options = small();
  options.hosts = 100;
  options.duration = 10LL * 86'400'000;
  options.spares = 12;
  options.failures = scaled(llama3_failures(), 40);
  const GoodputResult result = simulate_goodput(options);
  EXPECT_EQ(sum_of_parts(result), result.duration);
  EXPECT_EQ(result.failures, 40);
  EXPECT_EQ(result.ends, 0);
  EXPECT_GT(result.goodput(), 0.99);
}

TEST(Goodput, CausesAreSharedOutToTheLast) {
  const auto total = [](const std::vector<FailureCause>& causes) {
    return std::accumulate(causes.begin(), causes.end(), 0,
                           [](int sum, const FailureCause& cause) { return sum + cause.count; });
  };
  EXPECT_EQ(total(llama3_failures()), 419 + 47);
  for (const int count : {1, 7, 40, 466, 1'000}) {
    EXPECT_EQ(total(scaled(llama3_failures(), count)), count);
  }
  EXPECT_EQ(scaled(llama3_failures(), 932).front().count, 2 * 148);
}

}  // namespace
}  // namespace skein
