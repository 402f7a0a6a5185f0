// The ranks of a process that has several: threads of it.
#pragma once

#include <functional>
#include <vector>

#include "skein/launch/place/rank_info.h"

namespace skein {

// `count` ranks in place of the process's own: process 1 of 2 with 4 each has ranks 4 to 7 of 8.
std::vector<RankInfo> ranks_of_process(const RankInfo& process, int64_t count);

// Runs `body` for each, in a thread of its own where there are several, and returns what it returns
// for the first.
// Errors  the first that is no Error{kPeerLost}, which the others get because of it; else the first
int run_ranks(const std::vector<RankInfo>& ranks, const std::function<int(const RankInfo&)>& body);

}  // namespace skein
