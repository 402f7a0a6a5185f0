// The option --shard-index i/n: which part of the work this machine does.
//
// Errors   Error{kUsage} for anything else than i/n with 0 <= i < n
#pragma once

#include <string>

#include "skein/prepare/work_folder.h"

namespace skein {

WorkShare parse_shard_index(const std::string& text);

}  // namespace skein
