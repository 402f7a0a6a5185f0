// The batches that a run passes over: those that its checkpoint lists, and those that
// data.skip_batches names.
#pragma once

#include "skein/checkpoint/find/reader.h"
#include "skein/config/config.h"
#include "skein/data/lanes/skipped_batches.h"

namespace skein {

// `checkpoint`: where the run goes on from; null: it begins. Throws Error{kUsage} where
// data.skip_batches names a batch that the checkpoint was trained on.
SkippedBatches skipped_by(const Config& config, const CheckpointReader* checkpoint);

// For readers beside a run: of the newest readable checkpoint in its folder. Throws Error{kIo}
// where that cannot be read now, and Error{kUsage} where the folder holds two runs.
SkippedBatches skipped_by_run(const Config& config);

}  // namespace skein
