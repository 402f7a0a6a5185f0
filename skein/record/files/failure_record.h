// Records why a run died: a `failure` event in events.jsonl, where it can be found later.
//
// Who     rank 0, if it runs alone or a launcher started it; if `skein train` started the workers,
//         the parent process, which outlives them and knows the cause. One event per failure
// Where   only into a folder in which a run has begun. Not for kBusy and kUsage: such a start was
//         refused, which is no failure of the run in that folder
#pragma once

#include <cstdint>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/files/file.h"

namespace skein {

// The last step that was completed in this folder, by metrics.jsonl, or by a later start event if
// no step followed it. Reads the ends of both files. nullopt where neither says.
std::optional<int64_t> last_known_step(const fs::path& run_dir);

// `fatal`: it ended the run; otherwise training goes on. `rank`: the rank that failed. Never
// throws: if it cannot write, it logs that.
void record_failure(const fs::path& run_dir, int rank, const Error& error,
                    bool fatal = true) noexcept;

}  // namespace skein
