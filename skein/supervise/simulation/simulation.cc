#include "skein/supervise/simulation/simulation.h"

#include <algorithm>
#include <random>

#include "skein/supervise/simulation/simulated_cluster.h"

namespace skein {

SimulationOptions schedule_of(uint64_t seed) {
  std::mt19937_64 random(~seed);
  const auto one_of = [&](std::initializer_list<int64_t> values) {
    return *(values.begin() +
             std::uniform_int_distribution<ptrdiff_t>(0, std::ssize(values) - 1)(random));
  };
  SimulationOptions options;
  options.seed = seed;
  options.num_hosts = static_cast<int>(one_of({1, 2, 3, 4, 5, 6}));
  options.workers = static_cast<int>(one_of({1, 2}));
  options.start = one_of({50, 500, 3'000});
  options.step = one_of({100, 1'000});
  options.steps = options.trouble * 2 / 3 / options.step;
  options.collective_timeout = one_of({5'000, 60'000});
  options.fault_every = one_of({5'000, 20'000, 60'000});
  MembershipOptions& membership = options.supervisor.membership;
  membership.max_hosts =
      static_cast<int>(std::max<int64_t>(1, options.num_hosts - one_of({0, 0, 1, 2, 3})));
  membership.min_hosts =
      static_cast<int>(std::max<int64_t>(1, membership.max_hosts - one_of({0, 1, 2, 5})));
  membership.fence = one_of({20'000, 60'000, 120'000});
  membership.max_restarts = 100'000;
  membership.wait_for_hosts = options.trouble * 2;
  return options;
}

SimulationResult simulate(const SimulationOptions& options) { return Simulation(options).run(); }

}  // namespace skein
