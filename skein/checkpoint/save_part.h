// What one rank tells rank 0 of a save: part-00002.bin, an index of what it stored with its part of
// the training state as the note. Rank 0 joins all of them.
//
// Errors   as shard_index.h; Error{kInvalid} for a note that no rank writes
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skein/base/file.h"
#include "skein/checkpoint/file_ops.h"
#include "skein/checkpoint/manifest.h"
#include "skein/checkpoint/shard_index.h"

namespace skein {

// The bytes of a part: the tensors that `own` has shards of. Of those without, which others are to
// have stored, the note has a hash.
std::string part_bytes(const Manifest& own);

class SavePart {
 public:
  explicit SavePart(MappedFile file);      // another rank's
  explicit SavePart(const Manifest& own);  // rank 0's

  const ShardIndex& index() const { return *index_; }
  TrainingState& state() { return state_; }
  // hash_name of the tensors that the rank has and did not store.
  const std::vector<uint64_t>& not_stored() const { return not_stored_; }
  Manifest manifest() const;

 private:
  void open(std::span<const std::byte> bytes, const std::string& what);

  MappedFile file_;
  std::string own_;
  std::unique_ptr<ShardIndex> index_;
  TrainingState state_;
  std::vector<uint64_t> not_stored_;
};

// The parts of ranks 0, 1, 2, … as one manifest, its state rank 0's, its lanes of all
// (merge_parts.h). With `index_path`, files and shards go to that file, durably; else they are in
// the manifest. Throws where what the parts hold is not a whole checkpoint.
// Memory  with an index: 16 bytes for each tensor that each rank stored; the parts are mapped
Manifest join_parts(std::vector<SavePart> parts, const fs::path& index_path, const FileOps& ops);
Manifest join_parts(std::vector<SavePart> parts);

}  // namespace skein
