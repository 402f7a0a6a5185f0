// What a machine asks of the store, counted while machines wait, train and start again.
#include <gtest/gtest.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/supervise/digest.h"
#include "skein/supervise/simulation/simulation.h"

namespace skein {
namespace {

constexpr Millis kFrom = 60'000, kCounted = 20'000;
const char* const kStates[] = {"waiting", "training", "restarting"};

SimulationOptions hosts_without_faults(int num_hosts) {
  SimulationOptions options;
  options.num_hosts = num_hosts;
  options.workers = 1;
  options.fault_every = 0;
  options.trouble = 0;
  options.steps = 1'000'000;
  options.has_slow_calls = false;
  return options;
}

// Waiting for one more machine, training, and from the moment in which a worker crashes.
std::vector<std::vector<StoreCalls>> calls_of(int num_hosts) {
  SimulationOptions options = hosts_without_faults(num_hosts);
  MembershipOptions& membership = options.supervisor.membership;
  membership.min_hosts = membership.max_hosts = num_hosts + 1;
  options.marks = {kFrom, kFrom + kCounted};
  options.end_at = options.marks.back();
  const SimulationResult waiting = simulate(options);
  EXPECT_EQ(waiting.violation, "");
  EXPECT_EQ(waiting.generations, 0);
  membership.min_hosts = membership.max_hosts = num_hosts;
  options.crash_at = kFrom + kCounted;
  options.marks.push_back(kFrom + 2 * kCounted);
  options.end_at = options.marks.back();
  const SimulationResult trains = simulate(options);
  EXPECT_EQ(trains.violation, "");
  EXPECT_EQ(trains.generations, 2);
  return {waiting.calls.at(1), trains.calls.at(1), trains.calls.at(2)};
}

struct Figures {
  double mean = 0, most_of_a_follower = 0;  // calls a second
  StoreCalls leader;
};

Figures figures_of(std::vector<StoreCalls> calls, const char* state) {
  const auto num_hosts = static_cast<int>(calls.size());
  std::sort(calls.begin(), calls.end(), [](const StoreCalls& a, const StoreCalls& b) {
    return a.host_records > b.host_records;
  });
  Figures figures;
  constexpr double kSeconds = kCounted / 1e3;
  figures.leader = calls.front();
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto rate = static_cast<double>(calls[i].total()) / kSeconds;
    figures.mean += rate / num_hosts;
    if (i == 0) continue;
    figures.most_of_a_follower = std::max(figures.most_of_a_follower, rate);
    EXPECT_EQ(calls[i].host_records, 0) << "a follower reads the records of others";
  }
  fmt::print(
      "{:5} hosts, {}: {:.2f} calls a second on average, at most {:.2f} of a follower; the "
      "leader: {} looks, {} records, {} others in {} s\n",
      num_hosts, state, figures.mean, figures.most_of_a_follower, figures.leader.looks,
      figures.leader.host_records, figures.leader.others, kSeconds);
  return figures;
}

class CallsOnTheStore : public testing::TestWithParam<int> {};

// The same bounds whatever the number of hosts.
TEST_P(CallsOnTheStore, AMachineDoNotGrowWithTheirNumber) {
  const int num_hosts = GetParam();
  const std::vector<std::vector<StoreCalls>> calls = calls_of(num_hosts);
  constexpr double kMostOnAverage[] = {5, 5, 20}, kMostOfAFollower[] = {3.5, 3.5, 12};
  for (size_t state = 0; state < calls.size(); ++state) {
    const Figures figures = figures_of(calls[state], kStates[state]);
    EXPECT_LT(figures.mean, kMostOnAverage[state]);
    EXPECT_LT(figures.most_of_a_follower, kMostOfAFollower[state]);
    EXPECT_LE(figures.leader.host_records, figures.leader.looks * num_hosts)
        << "more than one read a machine and look";
    EXPECT_LE(figures.leader.others,
              8 * figures.leader.looks + figures.leader.host_records / kReadsABeat);
  }
}
INSTANTIATE_TEST_SUITE_P(Hosts, CallsOnTheStore, testing::Values(8, 64, 512, 4096));

}  // namespace
}  // namespace skein
