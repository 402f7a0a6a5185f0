// The checks of `skein check` that one process makes.
//
// All      a product in bf16 and fp32, and with peers all-gather, reduce-scatter and all-reduce,
//          the clocks of machines, and rates beside the others'
// Machine  by the first rank of each: a memory pattern, storage, the clock of the file system; with
//          a configuration, what its plan needs of memory and disk
// Result   the same on every rank
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/config/config.h"
#include "skein/health/check.h"
#include "skein/launch/place/rank_info.h"

namespace skein {

// `meet`: the folder in which ranks find each other, if there are several.
std::vector<RankHealth> check_as_rank(const std::optional<Config>& config,
                                      const RankInfo& rank_info, const std::string& meet);

// What a supervisor asks before each generation. Calls `begins` before a check, `ends` behind it.
// Returns whether none found the machine sick.
bool check_short(const std::optional<Config>& config,
                 const std::function<void(const Check&)>& begins,
                 const std::function<void(const CheckResult&)>& ends);

}  // namespace skein
