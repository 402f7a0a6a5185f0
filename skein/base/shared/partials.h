// Unfinished files and folders, `<path>.<16 digits>.partial` (unique_partial in file.h): those of
// processes that were killed are found by the next one that writes `path`.
//
// How      whoever writes one holds a lock on it (flock), which ends with the process. One that
//          nobody holds is left over. Where there are no locks none is held, and none is found
// Errors   none: what cannot be looked at stays where it is
// Threads  all may be called from any thread
#pragma once

#include <vector>

#include "skein/base/files/file.h"

namespace skein {

// Holds a partial file or folder that this process has just made, until the result is closed.
FileDescriptor hold_partial(const fs::path& partial);
// The same by a file that is open.
void hold_partial(const FileDescriptor& file);

// The partial files and folders of `path` that nobody holds.
std::vector<fs::path> dead_partials(const fs::path& path);

// Removes them, with all that is in them, and logs a line about each.
void remove_dead_partials(const fs::path& path);

// Swaps two names at once; false where the file system cannot. Throws Error{kIo | kNotFound}
bool exchange_names(const fs::path& a, const fs::path& b);

}  // namespace skein
