// Writes one snapshot, alone or together with other ranks; see checkpoint_writer.h.
#pragma once

#include "skein/checkpoint/save/checkpoint_writer.h"

namespace skein {

struct SaveJob {
  const fs::path& dir;
  const CheckpointWriterOptions& options;
  const FileOps& ops;
  const CheckpointLayout& layout;
  std::span<const std::byte> snapshot;
  int64_t number = 0;  // of this save, since the start
};

Result<SavedCheckpoint> save_alone(const SaveJob& job, const TrainingState& state);
Result<SavedCheckpoint> save_shared(const SaveJob& job, const TrainingState& state);
// The same of one rank or several where `dir` is s3://… (object_save.h).
Result<SavedCheckpoint> save_to_bucket(const SaveJob& job, const TrainingState& state);

// Tells the other ranks that this rank's part will not come.
void abandon_shared(const SaveJob& job, int64_t step, const std::exception& why);

}  // namespace skein
