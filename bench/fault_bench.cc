// Schedules of faults for the supervisors of a run (skein/supervise/simulation/simulation.h).
//
//   fault_bench [FIRST] [COUNT]       10,000 schedules from seed 0 on; exit code 1 for a violation
//   fault_bench --history SEED        what happened in one of them
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "skein/base/machine/clock.h"
#include "skein/supervise/simulation/simulation.h"

namespace skein {
namespace {

int show(uint64_t seed) {
  const SimulationResult result = simulate(schedule_of(seed));
  for (const std::string& line : result.history) fmt::print("{}\n", line);
  return result.violation.empty() ? 0 : 1;
}

int run(uint64_t first, uint64_t count) {
  const auto start = std::chrono::steady_clock::now();
  int64_t violations = 0, faults = 0, generations = 0, events = 0;
  Millis simulated = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const SimulationResult result = simulate(schedule_of(seed));
    faults += result.faults;
    generations += result.generations;
    events += result.events;
    simulated += result.duration;
    if (result.violation.empty()) continue;
    ++violations;
    fmt::print("seed {}: {}\n", seed, result.violation);
  }
  fmt::print(
      "{} schedules, {} faults, {} generations, {} events, {:.1f} simulated days in {:.1f} s: {} "
      "violations\n",
      count, faults, generations, events, static_cast<double>(simulated) / 86'400'000,
      seconds_since(start), violations);
  return violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  CLI::App app("Schedules of faults for the supervisors of a run");
  uint64_t first = 0, count = 10'000, seed = 0;
  app.add_option("first", first, "the first seed");
  app.add_option("count", count, "how many");
  auto* history = app.add_option("--history", seed, "show what happened under this seed");
  CLI11_PARSE(app, argc, argv);
  return history->count() > 0 ? skein::show(seed) : skein::run(first, count);
}
