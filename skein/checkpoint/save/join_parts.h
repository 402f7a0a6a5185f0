// Joins what all ranks say that they stored (part.h) into one manifest and the index that
// readers open.
//
// Cost     with an index, for 4,096 ranks of a 70B model: bench/start_bench.cc. Memory: the shards
//          of one batch of tensors and the ranks' states, however much the parts hold
#pragma once

#include <vector>

#include "skein/base/files/file.h"
#include "skein/checkpoint/format/file_ops.h"
#include "skein/checkpoint/format/manifest.h"
#include "skein/checkpoint/save/part.h"

namespace skein {

// Joins the parts of ranks 0, 1, 2, ... into one manifest with rank 0's state and the lanes of all
// (merge_parts.h). With `index_path`, files and shards go to that file, durably; otherwise they are
// in the manifest. Throws if the parts do not make up a whole checkpoint.
Manifest join_parts(std::vector<SavePart> parts, const fs::path& index_path, const FileOps& ops);
Manifest join_parts(std::vector<SavePart> parts);

}  // namespace skein
