// Whether a run's checkpoints fit where they go: known before the first step, and said then.
#pragma once

#include <cstdint>
#include <string>

#include "skein/base/files/file.h"
#include "skein/config/config.h"

namespace skein {

// Of `disk_bytes` that the checkpoints of a run take at most, what does not lie in `folder` yet; no
// less than one of them.
int64_t disk_bytes_to_come(const fs::path& folder, int64_t disk_bytes, int64_t checkpoint_bytes);

// What to tell where less is free in checkpoint.dir; "" where it fits, or nobody knows, as of a
// bucket.
std::string lack_of_disk(const Config& config, int64_t checkpoint_bytes);

}  // namespace skein
