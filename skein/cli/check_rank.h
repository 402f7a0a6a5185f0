// The checks of `skein check` that one process makes (skein/health), and their telling.
//
// All      a product in bf16 and fp32, and with peers all-gather, reduce-scatter and all-reduce,
//          the clocks of machines, and rates beside the others'
// Machine  by the first rank of each: a memory pattern, storage, the clock of the file system; with
//          a configuration, what its plan needs of memory and disk
// Exit     0 where no check failed, 1 otherwise; the same on every rank
#pragma once

#include <optional>
#include <string>

#include "skein/config/config.h"
#include "skein/launch/rank_info.h"

namespace skein {

// `meet`: the folder in which ranks find each other, if there are several. Rank 0 prints.
int check_as_rank(const std::optional<Config>& config, const RankInfo& rank_info,
                  const std::string& meet, bool json);

// What a supervisor asks before each generation: a line a check, as it goes.
int check_short(const std::optional<Config>& config);

}  // namespace skein
