#include <fmt/format.h>

#include <algorithm>

#include "skein/base/text/units.h"
#include "skein/plan/goodput/scenario.h"
#include "skein/record/report/time_ledger.h"

namespace skein {
namespace {

double seconds(Millis time) { return static_cast<double>(time) / 1000; }

// Under the names of the ledger of real runs.
std::vector<std::pair<std::string, Millis>> parts_of(const GoodputResult& result) {
  return {{time_part_name(TimePart::kProductive), result.productive},
          {time_part_name(TimePart::kSaving), result.saving},
          {time_part_name(TimePart::kReplicating), result.replicating},
          {time_part_name(TimePart::kRedone), result.redone},
          {time_part_name(TimePart::kStarting), result.starting},
          {time_part_name(TimePart::kDetecting), result.detecting},
          {time_part_name(TimePart::kRecovering), result.recovering},
          {time_part_name(TimePart::kWaiting), result.waiting}};
}

double quantile(std::vector<Millis> times, double share) {
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  const auto last = static_cast<double>(times.size() - 1);
  return seconds(times[static_cast<size_t>(share * last + 0.5)]);
}

std::string quantiles(const std::vector<Millis>& times) {
  return fmt::format("{}, of 99 in 100 within {}", format_duration(quantile(times, 0.5)),
                     format_duration(quantile(times, 0.99)));
}

}  // namespace

std::string goodput_to_text(const GoodputScenario& scenario, const GoodputResult& result) {
  const GoodputOptions& options = scenario.options;
  std::string text = fmt::format("{} ranks on {} machines, {} spares; {:.1f} days, {} failures\n\n",
                                 scenario.ranks, options.hosts, options.spares,
                                 seconds(result.duration) / kSecondsPerDay, result.failures);
  for (const auto& [name, time] : parts_of(result)) {
    text +=
        fmt::format("{:<12} {:>7.3f} %  {}\n", name, 100 * seconds(time) / seconds(result.duration),
                    format_duration(seconds(time)));
  }
  text += fmt::format("\ngoodput      {:>7.2f} %{}\n", 100 * result.goodput(),
                      scenario.published.empty() ? "" : "   published: " + scenario.published);
  text += fmt::format("noticed after       {}\n", quantiles(result.detections));
  text += fmt::format("failure to training {}\n", quantiles(result.pauses));
  text += fmt::format(
      "{} generations, {} machines replaced, {} times from storage, {} times started again after "
      "an end, {} failures while nothing ran\n\nTaken from:\n",
      result.generations, result.replaced, result.from_storage, result.ends,
      result.struck_while_down);
  for (const Assumption& assumption : scenario.assumptions) {
    text +=
        fmt::format("  {:<42} {:<16} {}\n", assumption.what, assumption.value, assumption.source);
  }
  text +=
      "\nPublished of others, with what prints the same simulation from their figures:\n"
      "  98.81 %     recovered by itself, 128 machines   --preset original\n"
      "  77.83 %     recovered by hand                   --preset original-by-hand\n"
      "  over 90 %   Llama 3, 16,384 GPUs                --preset llama3\n";
  return text;
}

OrderedJson goodput_to_json(const GoodputScenario& scenario, const GoodputResult& result) {
  const GoodputOptions& options = scenario.options;
  OrderedJson json = {{"goodput", result.goodput()}, {"ranks", scenario.ranks},
                      {"hosts", options.hosts},      {"spares", options.spares},
                      {"seed", options.seed},        {"seconds", seconds(result.duration)},
                      {"failures", result.failures}, {"steps", result.steps}};
  for (const auto& [name, time] : parts_of(result)) json["parts"][name] = seconds(time);
  const auto times_of = [](const std::vector<Millis>& times) {
    return OrderedJson{{"p50", quantile(times, 0.5)}, {"p99", quantile(times, 0.99)}};
  };
  json["detection_seconds"] = times_of(result.detections);
  json["pause_seconds"] = times_of(result.pauses);
  json["generations"] = result.generations;
  json["replaced"] = result.replaced;
  json["from_storage"] = result.from_storage;
  json["ends"] = result.ends;
  json["failures_while_down"] = result.struck_while_down;
  json["published"] = scenario.published.empty() ? OrderedJson() : OrderedJson(scenario.published);
  json["assumptions"] = OrderedJson::array();
  for (const Assumption& assumption : scenario.assumptions) {
    json["assumptions"].push_back(
        {{"what", assumption.what}, {"value", assumption.value}, {"source", assumption.source}});
  }
  return json;
}

}  // namespace skein
