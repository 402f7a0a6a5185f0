// Whether a machine is fit to train: what its checks give, how they are told and compared.
//
// Check     a name and a function; one that throws has failed, with the error as what was found.
//           Where it could not be made (memory or a device that others hold, a call that the
//           system does not have) that is doubtful
// Verdict   well; doubtful: training may go on, but somebody should look; sick: it should not
// Rate      in `unit` a second, 0 for none; of peers, one below kSlowShare of the median of the
//           others is sick: it would hold up all of them in every step
// Bits      every check but those of time compares with an answer that was computed otherwise
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

enum class Health : uint8_t { kWell, kDoubtful, kSick };

struct CheckResult {
  std::string name;
  Health health = Health::kWell;
  std::string found;
  std::string expected;  // said where it is not met
  std::string advice;    // what to do then
  double seconds = 0;
  double rate = 0;
  std::string unit;  // "FLOP/s", "B/s"
};

struct Check {
  std::string name;
  std::function<CheckResult()> run;  // leaves name and seconds to run_check
};

CheckResult run_check(const Check& check);

// What one rank found.
struct RankHealth {
  std::string host;
  int rank = 0;
  std::vector<CheckResult> results;
};

constexpr double kSlowShare = 0.7;
// Makes those sick that are slower than their peers in the check of the same name.
void compare_with_peers(std::vector<RankHealth>& ranks);

bool all_well(std::span<const RankHealth> ranks);  // nobody is sick

// "ok, 0.02 s: …", "FAILED …, expected …. …"
std::string outcome_text(const CheckResult& result);
// A line a check; hosts and ranks are named where there are several.
std::string health_text(std::span<const RankHealth> ranks);
OrderedJson health_to_json(std::span<const RankHealth> ranks);
OrderedJson rank_health_to_json(const RankHealth& rank);
RankHealth rank_health_from_json(const Json& json);

}  // namespace skein
