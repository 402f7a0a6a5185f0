// What all ranks say that they stored (save_part.h) as one manifest, and as the index that readers
// open.
//
// Cost     with an index, 4,096 ranks of a 70B: bench/start_bench.cc; memory: what one batch of
//          tensors has in shards, and the ranks' states, whatever the parts hold
#pragma once

#include <vector>

#include "skein/base/file.h"
#include "skein/checkpoint/file_ops.h"
#include "skein/checkpoint/manifest.h"
#include "skein/checkpoint/save_part.h"

namespace skein {

// The parts of ranks 0, 1, 2, … as one manifest, its state rank 0's, its lanes of all
// (merge_parts.h). With `index_path`, files and shards go to that file, durably; else they are in
// the manifest. Throws where what the parts hold is not a whole checkpoint.
Manifest join_parts(std::vector<SavePart> parts, const fs::path& index_path, const FileOps& ops);
Manifest join_parts(std::vector<SavePart> parts);

}  // namespace skein
