// Which checkpoints of a folder the newest one follows from: those of the timeline with the largest
// number, and those that it began from. Checkpoints that an earlier timeline saved after the step
// at which it was left do not belong to them.
//
// Reads    the head of every manifest, without its checksum: the chosen one is verified as a whole
// Errors   Error{kIo} if a manifest cannot be read now. A damaged one is no error: it belongs to no
//          known timeline.
#pragma once

#include <optional>
#include <vector>

#include "skein/checkpoint/find/checkpoint_folder.h"
#include "skein/checkpoint/format/timeline.h"

namespace skein {

struct CheckpointHead {
  CheckpointInfo info;
  std::optional<Timeline> timeline;  // nothing if the manifest is damaged
};

struct Lineage {
  Timeline timeline;                // the one to go on with
  std::vector<Timeline> ancestors;  // its parent in this folder, that one's parent, and so on
  // Newest first. Damaged ones are included: only verification can tell which they are.
  std::vector<CheckpointInfo> checkpoints;
  std::vector<CheckpointInfo> left;  // saved after the step returned to, or on another branch
  // The checkpoints of two runs in one folder: the Error{kUsage} for callers that want to go on.
  std::optional<Error> conflict;
};

// Whether the operating system refused to read, which says nothing about what is stored.
bool is_read_error(const Error& error);

// Of one checkpoint. Throws Error{kIo}, or if it is damaged kNotFound, kInvalid or kCorrupt.
Timeline read_timeline(const fs::path& checkpoint);

// For the folders of list_checkpoints.
std::vector<CheckpointHead> read_heads(const fs::path& dir);

Lineage lineage_of(const fs::path& dir);
Lineage lineage_of(const std::vector<CheckpointHead>& heads);

}  // namespace skein
