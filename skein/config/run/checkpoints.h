// Where the checkpoints of a run lie, for commands that get its folder.
#pragma once

#include "skein/base/files/file.h"

namespace skein {

// `checkpoints` in the folder of a run, or what its config.toml names as checkpoint.dir, a folder
// or a bucket; of anything else `path` itself: it may be a folder of checkpoints. Throws
// Error{kUsage | kIo} for a config.toml that cannot be read.
fs::path checkpoints_inside(const fs::path& path);

}  // namespace skein
