// Clusters whose goodput is simulated: published ones, and that of a plan.
#include "skein/plan/goodput/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/replica/writer.h"

namespace skein {
namespace {

// 419 unexpected and 47 planned interruptions of 16,384 GPUs in 54 days.
constexpr double kLlama3Hours = 16'384 * 54 * 24 / 466.0;
constexpr int64_t kHostsPerSpare = 64, kFewestSpares = 2;

// Assumed of every cluster that Skein trains on.
constexpr double kConnect = 30;       // s, from 10,000 ranks on
constexpr double kProgramStart = 10;  // s
constexpr double kCopyRate = 25e9;    // bytes/s, of a rank
constexpr double kStorageRate = 1e9;  // bytes/s, of a machine
constexpr double kStoreRate = 1e9;    // bytes/s, of the rendezvous in all
constexpr double kRecordBytes = 400;  // of a machine
constexpr std::string_view kShares = "published: Llama 3, arXiv 2407.21783, table 5";

Millis millis(double seconds) { return std::llround(seconds * 1000); }

struct Notes {
  std::vector<Assumption>& list;
  void add(const std::string& what, const std::string& value, std::string_view source) {
    list.push_back({what, value, std::string(source)});
  }
  void time(const std::string& what, Millis value, std::string_view source) {
    add(what, format_short_duration(static_cast<double>(value) / 1000), source);
  }
};

void set_time_and_failures(const GoodputRequest& request, double days, double mtbf_hours,
                           std::string_view source, GoodputScenario& scenario) {
  GoodputOptions& options = scenario.options;
  const double asked_days = request.days > 0 ? request.days : days;
  options.seed = static_cast<uint64_t>(request.seed);
  options.duration = millis(asked_days * kSecondsPerDay);
  const bool is_given = request.failures > 0 || request.mtbf_hours > 0;
  const double hours = request.mtbf_hours > 0 ? request.mtbf_hours : mtbf_hours;
  const double expected = static_cast<double>(scenario.ranks) * asked_days * 24 / hours;
  const auto count =
      request.failures > 0 ? request.failures : std::max<int64_t>(1, std::llround(expected));
  if (count > 1'000'000) {
    fail(ErrorCode::kUsage,
         "{} failures in {} days: expected a million at most; raise --mtbf-hours", count,
         asked_days);
  }
  options.failures = scaled(llama3_failures(), static_cast<int>(count));
  options.spares = static_cast<int>(request.spares >= 0
                                        ? request.spares
                                        : std::max(kFewestSpares, options.hosts / kHostsPerSpare));
  Notes notes{scenario.assumptions};
  notes.add("failures", fmt::format("{}", count), is_given ? "as asked for" : source);
  notes.add("their causes", "19 kinds", kShares);
  notes.add("spare machines", fmt::format("{}", options.spares),
            request.spares >= 0 ? "as asked for" : "assumed: one for 64, at least 2");
  notes.time("repair of a machine", options.repair, "assumed");
}

// The protocol's own times: what they are in `skein train`.
void note_protocol(GoodputScenario& scenario) {
  const GoodputOptions& options = scenario.options;
  Notes notes{scenario.assumptions};
  notes.time("a machine is silent after", options.supervisor.membership.silence, "the protocol's");
  notes.time("deadline of collectives", options.collective_timeout, "configured");
  notes.time("deadline of workers that hang", options.supervisor.hang, "configured");
}

// What a state of so many bytes takes to copy, save and read again, and to start from.
void set_state(double bytes, int64_t memory_every_steps, GoodputScenario& scenario) {
  GoodputOptions& options = scenario.options;
  const double of_rank = bytes / static_cast<double>(scenario.ranks);
  const double copy = of_rank / kCopyRate;
  const double stored = bytes / static_cast<double>(options.hosts) / kStorageRate;
  const double connect = kConnect * std::min(1.0, static_cast<double>(scenario.ranks) / 10'000);
  options.copy = std::max<Millis>(1, millis(copy));
  options.save = options.copy;
  options.save_write = millis(stored);
  const double share = kCopyShare * static_cast<double>(options.step);
  const auto rarely = static_cast<int64_t>(std::ceil(static_cast<double>(options.copy) / share));
  options.copy_every = memory_every_steps >= 0 ? memory_every_steps : std::max<int64_t>(1, rarely);
  options.start_memory = millis(kProgramStart + connect + copy);
  options.start_storage = millis(kProgramStart + connect + stored);
  const double views = static_cast<double>(options.hosts) * static_cast<double>(options.hosts);
  options.exchange = 20 + millis(views * kRecordBytes / kStoreRate);
  Notes notes{scenario.assumptions};
  notes.add("state in all", format_bytes(static_cast<int64_t>(bytes)), "weights, masters, moments");
  notes.time("a copy in memory, or a save, stands still", options.copy,
             "assumed: 25 GB/s a rank; a save took 1.07 x a copy (docs/measured.md)");
  notes.add("copied every", fmt::format("{} steps", options.copy_every),
            memory_every_steps >= 0 ? "configured" : "as often as costs less than 1 %");
  notes.time("written to storage in", options.save_write, "assumed: 1 GB/s a machine");
  notes.time("workers start from memory in", options.start_memory,
             "assumed: 10 s for the program (the demo's takes 1.45 s, docs/measured.md), 30 s to "
             "connect 10,000 ranks (as MegaScale, arXiv 2402.15627), and the copy");
  notes.time("from storage in", options.start_storage, "the same, and reading it");
  notes.time("an exchange with the rendezvous", options.exchange,
             "assumed: 1 GB/s in all for the records that all read of all");
}

GoodputScenario llama3(bool with_skein, const GoodputRequest& request) {
  GoodputScenario scenario;
  GoodputOptions& options = scenario.options;
  options.hosts = 2'048;
  scenario.ranks = 16'384;
  options.step = 6'200;
  Notes notes{scenario.assumptions};
  notes.time("step", options.step,
             "published: 16.8 M tokens of 405 G parameters at 400 TFLOP/s a GPU");
  set_time_and_failures(request, 54, kLlama3Hours,
                        "published: 466 interruptions of 16,384 GPUs in 54 days", scenario);
  if (with_skein) {
    options.save_every = 1'000;
    notes.add("saved every", "1,000 steps", "the default of checkpoint.every_steps");
    set_state(405e9 * 14, -1, scenario);
    note_protocol(scenario);
    return scenario;
  }
  scenario.published = "over 90 %";
  options.save_every = 50;
  options.start_memory = options.start_storage = 600'000;
  options.collective_timeout = options.supervisor.hang = 600'000;
  notes.add("saved every", "50 steps, 5 min", "assumed");
  notes.time("the run is back after", options.start_storage,
             "published of synchronous training on O(100 k) GPUs by the same authors (FT-HSDP)");
  notes.time("a collective that hangs is noticed after", options.collective_timeout,
             "assumed: PyTorch's default");
  return scenario;
}

GoodputScenario original(bool by_hand, const GoodputRequest& request) {
  GoodputScenario scenario;
  GoodputOptions& options = scenario.options;
  options.hosts = 128;
  scenario.ranks = 4'096;
  scenario.published = by_hand ? "77.83 %" : "98.81 %";
  options.step = 4'200;
  options.save_every = 1'000;
  options.start_memory = options.start_storage = 600'000;
  Notes notes{scenario.assumptions};
  notes.add("machines", "128 x trn1.32xlarge", "published");
  notes.time("step", options.step, "published: 1.8 T tokens in \"a few weeks\", taken as three");
  notes.add("saved every", "1,000 steps", "published: the configuration of awslabs/HLAT");
  notes.time("the run is back after", options.start_storage, "assumed");
  constexpr double kHours = 62;
  set_time_and_failures(request, 365, kHours * 4'096,
                        "assumed: one in 62 h, to come near 98.81 %; the rate is not published",
                        scenario);
  if (by_hand) {
    options.supervisor.membership.max_restarts = 0;
    options.by_hand = 18 * 3'600'000;
    notes.time("a person starts it again after", options.by_hand,
               "assumed, to come near 77.83 %; no time is published");
  }
  return scenario;
}

}  // namespace

std::vector<std::string> goodput_presets() {
  return {"llama3", "llama3-with-skein", "original", "original-by-hand"};
}

GoodputScenario preset_scenario(const GoodputRequest& request) {
  if (request.preset.starts_with("llama3")) return llama3(request.preset != "llama3", request);
  return original(request.preset == "original-by-hand", request);
}

GoodputScenario planned_scenario(const GoodputRequest& request, const Config& config,
                                 const Plan& plan) {
  GoodputScenario scenario;
  GoodputOptions& options = scenario.options;
  scenario.ranks = plan.ranks();
  options.hosts = static_cast<int>(ceil_div(plan.ranks(), plan.hardware.devices_per_node));
  options.step = std::max<Millis>(1, millis(plan.step.step_seconds));
  options.save_every = config.checkpoint.every_steps;
  options.collective_timeout = millis(config.launch.collective_timeout_s);
  options.supervisor.hang = millis(config.launch.hang_timeout_s);
  options.supervisor.membership.max_restarts = static_cast<int>(config.launch.max_restarts);
  Notes notes{scenario.assumptions};
  notes.time("step", options.step, "predicted: `skein plan` without --goodput");
  notes.add("saved every", fmt::format("{} steps", options.save_every), "configured");
  set_time_and_failures(request, 54, kLlama3Hours,
                        "published: as often a rank as in Llama 3's 54 days", scenario);
  set_state(static_cast<double>(plan.run.checkpoint_bytes), config.checkpoint.memory_every_steps,
            scenario);
  note_protocol(scenario);
  return scenario;
}

}  // namespace skein
