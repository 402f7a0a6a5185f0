// How a finished checkpoint gets its name, and which checkpoints are deleted then. In a bucket the
// manifest does it (object_save.h).
//
// Errors   Error{kIo | kNoSpace} naming the path
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/checkpoint/find/checkpoint_folder.h"

namespace skein {

// Renames the finished folder `partial` to `path`, durably, and replaces a checkpoint of that name.
// Throws if it did not. Returns an error that came after the rename: the name may not be durable,
// or the old checkpoint is not removed.
std::optional<Error> commit_folder(const fs::path& partial, const fs::path& path,
                                   const FileOps& ops);

struct RetentionPolicy {
  int64_t keep = 5;                   // newest checkpoints to keep; 0: all
  int64_t permanent_every_steps = 0;  // multiples of this step are never deleted; 0: none
  std::string best_by = {};           // a loss, whose best checkpoint is never deleted; empty: none
};

// The checkpoints to delete after `committed_step` was saved: all up to that step but the newest
// `keep`, the permanent ones and `best_step`. Later steps are obsolete, since the run restarted
// before them: they are neither counted nor deleted.
std::vector<CheckpointInfo> select_expired(std::vector<CheckpointInfo> newest_first,
                                           int64_t committed_step, const RetentionPolicy& policy,
                                           std::optional<int64_t> best_step = std::nullopt);

}  // namespace skein
