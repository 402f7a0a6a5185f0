#include "skein/health/check.h"

#include <algorithm>
#include <array>
#include <map>

#include "skein/base/error.h"
#include "skein/base/exception.h"
#include "skein/base/machine/clock.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

constexpr std::array<const char*, 3> kNames = {"ok", "doubtful", "FAILED"};

const char* name_of(Health health) { return kNames.at(static_cast<size_t>(health)); }

std::string rate_text(double rate, const std::string& unit) {
  return unit == "B/s" ? format_bytes(static_cast<int64_t>(rate)) + "/s"
                       : fmt::format("{:.4g} G{}", rate * 1e-9, unit);
}

double median_of_others(const std::vector<const CheckResult*>& all, const CheckResult* self) {
  std::vector<double> rates;
  for (const CheckResult* other : all) {
    if (other != self) rates.push_back(other->rate);
  }
  std::sort(rates.begin(), rates.end());
  const size_t middle = rates.size() / 2;
  return rates.size() % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2;
}

// Others hold the device or its memory, or the system lacks what this check needs: that says
// nothing of the machine.
bool could_not_be_made(const Error& error) {
  return error.code() == ErrorCode::kNoSpace || error.code() == ErrorCode::kBusy ||
         error.code() == ErrorCode::kUnsupported;
}

}  // namespace

CheckResult run_check(const Check& check) {
  CheckResult result;
  const auto start = Clock::now();
  try {
    result = check.run();
  } catch (const std::exception& exception) {
    const Error error = to_error(exception);
    result.health = could_not_be_made(error) ? Health::kDoubtful : Health::kSick;
    result.found = error.what();
  }
  result.name = check.name;
  result.seconds = seconds_since(start);
  return result;
}

void compare_with_peers(std::vector<RankHealth>& ranks) {
  std::map<std::string, std::vector<CheckResult*>> by_name;
  for (RankHealth& rank : ranks) {
    for (CheckResult& result : rank.results) {
      if (result.rate > 0) by_name[result.name].push_back(&result);
    }
  }
  for (auto& [name, results] : by_name) {
    if (results.size() < 2) continue;
    const std::vector<const CheckResult*> all(results.begin(), results.end());
    for (CheckResult* result : results) {
      const double median = median_of_others(all, result);
      if (result->health == Health::kSick || result->rate >= kSlowShare * median) continue;
      result->health = Health::kSick;
      result->expected = fmt::format("at least {:.0f} % of the others' median, {}",
                                     100 * kSlowShare, rate_text(median, result->unit));
      result->advice = "Look for other programs, heat or a broken part on this machine";
    }
  }
}

bool all_well(std::span<const RankHealth> ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [](const RankHealth& rank) {
    return std::all_of(rank.results.begin(), rank.results.end(),
                       [](const CheckResult& result) { return result.health != Health::kSick; });
  });
}

std::string outcome_text(const CheckResult& result) {
  const std::string text =
      result.rate > 0 ? fmt::format("{}, {}", rate_text(result.rate, result.unit), result.found)
                      : result.found;
  if (result.health == Health::kWell) return fmt::format("ok, {:.2f} s: {}", result.seconds, text);
  std::string line = fmt::format("{} {}", name_of(result.health), text);
  if (!result.expected.empty()) line += ", expected " + result.expected;
  if (!result.advice.empty()) line += ". " + result.advice;
  return line;
}

std::string health_text(std::span<const RankHealth> ranks) {
  std::string text;
  for (const RankHealth& rank : ranks) {
    for (const CheckResult& result : rank.results) {
      if (ranks.size() > 1) text += fmt::format("{} rank {:<4} ", rank.host, rank.rank);
      text += fmt::format("{:<16} {}\n", result.name, outcome_text(result));
    }
  }
  return text;
}

OrderedJson rank_health_to_json(const RankHealth& rank) {
  OrderedJson checks = OrderedJson::array();
  for (const CheckResult& result : rank.results) {
    checks.push_back({{"host", rank.host},
                      {"rank", rank.rank},
                      {"name", result.name},
                      {"verdict", name_of(result.health)},
                      {"found", result.found},
                      {"expected", result.expected},
                      {"advice", result.advice},
                      {"seconds", result.seconds},
                      {"rate", result.rate},
                      {"unit", result.unit}});
  }
  return checks;
}

RankHealth rank_health_from_json(const Json& json) {
  RankHealth rank;
  for (const Json& check : json) {
    rank.host = check.at("host").get<std::string>();
    rank.rank = check.at("rank").get<int>();
    const auto verdict = check.at("verdict").get<std::string>();
    const auto found = std::find(kNames.begin(), kNames.end(), verdict);
    if (found == kNames.end()) fail(ErrorCode::kInternal, "a check's verdict is '{}'", verdict);
    rank.results.push_back({.name = check.at("name").get<std::string>(),
                            .health = static_cast<Health>(found - kNames.begin()),
                            .found = check.at("found").get<std::string>(),
                            .expected = check.at("expected").get<std::string>(),
                            .advice = check.at("advice").get<std::string>(),
                            .seconds = check.at("seconds").get<double>(),
                            .rate = check.at("rate").get<double>(),
                            .unit = check.at("unit").get<std::string>()});
  }
  return rank;
}

OrderedJson health_to_json(std::span<const RankHealth> ranks) {
  OrderedJson checks = OrderedJson::array();
  for (const RankHealth& rank : ranks) {
    for (const OrderedJson& check : rank_health_to_json(rank)) checks.push_back(check);
  }
  return {{"ok", all_well(ranks)}, {"checks", std::move(checks)}};
}

}  // namespace skein
