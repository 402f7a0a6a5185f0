// The names in a folder of checkpoints. save/commit.h gives a finished checkpoint its name.
//
//   step-00001000            a checkpoint: gets this name only when all of it is durable
//   step-00001000.partial    being written, or left behind by a process that died
//   step-00001000.x.partial  being written by several ranks; x.failed: given up (shared_save.h)
//   step-00001000.deleting   being deleted: renamed first, so that a half-deleted one never looks
//                            whole
//   step-00001000.replaced   the old checkpoint of a step that is being saved again, where the file
//                            system cannot exchange two names
//
// In a bucket (s3://…) there are no renames: objects.h says what lies there instead.
//
// Errors   Error{kIo | kNoSpace} naming the path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/checkpoint/format/file_ops.h"

namespace skein {

inline constexpr std::string_view kReplacedEnding = ".replaced";

struct CheckpointInfo {
  int64_t step = 0;
  fs::path path;
};

std::string checkpoint_name(int64_t step);                              // "step-00001000"
std::optional<int64_t> parse_checkpoint_name(std::string_view folder);  // the step

// The step of a checkpoint's folder, step-00001000 or step-00001000.replaced.
std::optional<int64_t> step_of_folder(const fs::path& path);

// `path`, or the old checkpoint of its step where a replacement was interrupted.
fs::path find_checkpoint(const fs::path& path);

// Newest (largest step) first, without checking whether they are good. A checkpoint whose
// replacement was interrupted is listed under the name that it has. Empty if `dir` is missing.
std::vector<CheckpointInfo> list_checkpoints(const fs::path& dir);

// Removes what a dead process left behind, except `keep` and checkpoints that somebody reads, and
// undoes a replacement that was interrupted. Only for the one process that may write in `dir`,
// before it looks for the newest good checkpoint.
void clean_unfinished(const fs::path& dir, const FileOps& ops, const fs::path& keep = {});

// Returns false, and does nothing, if somebody reads the checkpoint.
bool remove_checkpoint(const CheckpointInfo& checkpoint, const FileOps& ops);

}  // namespace skein
