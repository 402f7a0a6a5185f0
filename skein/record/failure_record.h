// Why a run died, written where it is looked for later: a `failure` event in events.jsonl.
//
// Who     rank 0, where it runs alone or a launcher started it; where `skein train` started
//         workers, that process, which outlives them and knows the cause. One event a failure
// Where   only into a folder in which a run has begun; not for kBusy: the folder is another's
#pragma once

#include <cstdint>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/file.h"

namespace skein {

// The last step that is known to be done in this folder: of metrics.jsonl, or of the start event
// where nothing was done since. Reads the ends of both files. Nothing where neither says.
std::optional<int64_t> last_known_step(const fs::path& run_dir);

// `rank`: the one that failed. Never throws: what it cannot write, it logs.
void record_failure(const fs::path& run_dir, int rank, const Error& error) noexcept;

}  // namespace skein
