// The files of a corpus that lies in a folder.
//
// Errors   Error{kInvalid} for a folder without .arrow files, and for one whose names
//          (part-00003-of-00016.arrow) tell that some are missing; Error{kIo} for one that cannot
//          be read.
#pragma once

#include <vector>

#include "skein/base/file.h"

namespace skein {

// `path` itself if it is no folder; otherwise the *.arrow files of the folder in the order of their
// names. Hidden files and folders inside are left out.
std::vector<fs::path> corpus_files(const fs::path& path);

}  // namespace skein
