// The names inside a folder of checkpoints, and which of them are kept.
//
//   step-00001000            a checkpoint: renamed to this name only when all of it is durable
//   step-00001000.partial    being written, or left behind by a process that died
//   step-00001000.x.partial  being written by several ranks; x.failed: given up (shared_save.h)
//   step-00001000.deleting   on its way out: renamed first, so that half of one never looks whole
//   step-00001000.replaced   the old checkpoint of a step that is being saved again, where the file
//                            system cannot exchange two names
//
// Errors   Error{kIo | kNoSpace} naming the path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/checkpoint/file_ops.h"

namespace skein {

struct CheckpointInfo {
  int64_t step = 0;
  fs::path path;
};

std::string checkpoint_name(int64_t step);                              // "step-00001000"
std::optional<int64_t> parse_checkpoint_name(std::string_view folder);  // the step

// The step of a checkpoint's folder, step-00001000 or step-00001000.replaced.
std::optional<int64_t> step_of_folder(const fs::path& path);

// The folder of that name; the old checkpoint of its step where a replacement was cut in two.
fs::path find_checkpoint(const fs::path& path);

// Newest (largest step) first; whether they are good is not looked at. One whose replacement was
// cut in two is among them, under the name that it has. None where `dir` is missing.
std::vector<CheckpointInfo> list_checkpoints(const fs::path& dir);

// Removes what a process that died left behind, all but `keep` and what somebody reads, and undoes
// a replacement that was cut in two. Only for the one process that may write in `dir`; to be called
// before it looks for the newest good one.
void clean_unfinished(const fs::path& dir, const FileOps& ops, const fs::path& keep = {});

// Gives the finished folder `partial` the name `path`, durably. A checkpoint that has the name
// already is replaced. Throws where that was not done; what went wrong after it was done, so that
// the name may not be durable or the old checkpoint is not removed, is returned.
std::optional<Error> commit_folder(const fs::path& partial, const fs::path& path,
                                   const FileOps& ops);

struct RetentionPolicy {
  int64_t keep = 5;                   // newest checkpoints to keep; 0 keeps all
  int64_t permanent_every_steps = 0;  // multiples of it are never deleted; 0: none
};

// The checkpoints to delete after `committed_step` was saved: neither the newest `keep` up to that
// step, nor permanent ones. Those of later steps are not good (the run went on from before them):
// they are neither counted nor deleted.
std::vector<CheckpointInfo> select_expired(std::vector<CheckpointInfo> newest_first,
                                           int64_t committed_step, const RetentionPolicy& policy);

// False where somebody reads it: then nothing was done.
bool remove_checkpoint(const CheckpointInfo& checkpoint, const FileOps& ops);

}  // namespace skein
