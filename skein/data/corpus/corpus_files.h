// The files of a corpus that lies in a folder, or its objects in a store.
//
// Errors   Error{kInvalid} for a folder without .arrow files, and for one whose names are those of
//          shards that are not one corpus (shard_set.h); Error{kIo} for one that cannot be read;
//          those of a store
#pragma once

#include <vector>

#include "skein/base/files/file.h"

namespace skein {

// `path` itself if it is no folder; otherwise the *.arrow files of the folder in the order of their
// names. Hidden files and folders inside are left out. The same of s3://BUCKET/KEY: the object of
// that name, or those that lie under it.
std::vector<fs::path> corpus_files(const fs::path& path);

}  // namespace skein
