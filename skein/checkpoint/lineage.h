// Which checkpoints of a folder the newest one follows from: those of the timeline with the largest
// number, and those that it began from. What an earlier timeline saved after the step at which it
// was left is none of them.
//
// Reads    the head of every manifest, without its checksum: what is chosen is verified as a whole
// Errors   Error{kIo} where a manifest cannot be read now. A damaged one is no error: it
//          belongs to no timeline that is known.
#pragma once

#include <optional>
#include <vector>

#include "skein/checkpoint/checkpoint_folder.h"
#include "skein/checkpoint/timeline.h"

namespace skein {

struct CheckpointHead {
  CheckpointInfo info;
  std::optional<Timeline> timeline;  // nothing: its manifest is damaged
};

struct Lineage {
  Timeline timeline;                // that is gone on with
  std::vector<Timeline> ancestors;  // of this folder: what it began from, and that one, and so on
  // Newest first. Damaged ones are among them: which they are is for whoever verifies them to tell.
  std::vector<CheckpointInfo> checkpoints;
  std::vector<CheckpointInfo> left;  // saved after what was gone back to, and other branches
  // Checkpoints of two runs in one folder: Error{kUsage} for those who wanted to go on.
  std::optional<Error> conflict;
};

// An operating system's refusal to read, which says nothing of what is stored.
bool is_read_error(const Error& error);

// Of one checkpoint. Throws Error{kIo}, or kNotFound, kInvalid or kCorrupt where it is damaged.
Timeline read_timeline(const fs::path& checkpoint);

// As list_checkpoints.
std::vector<CheckpointHead> read_heads(const fs::path& dir);

Lineage lineage_of(const fs::path& dir);
Lineage lineage_of(const std::vector<CheckpointHead>& heads);

}  // namespace skein
