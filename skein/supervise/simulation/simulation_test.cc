// 500 schedules of faults; build/fault_bench runs more, and shows the history of one.
#include "skein/supervise/simulation/simulation.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

class FaultSchedules : public testing::TestWithParam<int> {};

TEST_P(FaultSchedules, KeepTheInvariants) {
  constexpr int kSchedules = 50;
  int64_t num_faults = 0, num_generations = 0;
  for (int i = 0; i < kSchedules; ++i) {
    const auto seed = static_cast<uint64_t>(GetParam() * kSchedules + i);
    const SimulationResult result = simulate(schedule_of(seed));
    EXPECT_EQ(result.violation, "") << "look at it with: build/fault_bench --history " << seed;
    num_faults += result.faults;
    num_generations += result.generations;
  }
  EXPECT_GT(num_faults, 20 * kSchedules);
  EXPECT_GT(num_generations, 3 * kSchedules);
}

INSTANTIATE_TEST_SUITE_P(Hundreds, FaultSchedules, testing::Range(0, 10));

TEST(Simulation, ASeedGivesTheSameHistory) {
  const SimulationResult once = simulate(schedule_of(42));
  const SimulationResult again = simulate(schedule_of(42));
  EXPECT_EQ(once.history, again.history);
  EXPECT_EQ(once.events, again.events);
  EXPECT_NE(once.history, simulate(schedule_of(43)).history);
}

TEST(Simulation, WithoutFaultsOneGenerationTrainsToTheEnd) {
  SimulationOptions options;
  options.fault_every = 0;
  options.supervisor.membership.min_hosts = options.supervisor.membership.max_hosts = 5;
  const SimulationResult result = simulate(options);
  EXPECT_EQ(result.violation, "");
  EXPECT_EQ(result.generations, 1);
  EXPECT_EQ(result.steps, options.steps);
  // Hosts come within 5 s, check themselves in 0.5 s, workers start in 4.5 s; a call to the store
  // takes up to 5 s.
  EXPECT_LT(result.duration, options.steps * options.step + 21'000);
}

// Each stop costs this run 10 s and more: the check of a newcomer, a save, a start.
TEST(Simulation, ASpareWhoseCheckFlapsCostsLittle) {
  for (const int flapping : {1, 2}) {
    SimulationOptions options;
    options.seed = static_cast<uint64_t>(flapping);
    options.fault_every = 0;
    options.flapping = flapping;
    options.steps = 7'200;
    options.start = 10'000;
    options.trouble = options.steps * options.step;
    options.supervisor.membership.gather = 0;
    options.supervisor.membership.min_hosts = 2;
    options.supervisor.membership.max_hosts = 5;
    const SimulationResult result = simulate(options);
    EXPECT_EQ(result.violation, "");
    EXPECT_GT(result.generations, 4);
    EXPECT_LT(result.duration, options.steps * options.step * 106 / 100) << flapping;
  }
}

}  // namespace
}  // namespace skein
