// What one rank tells rank 0 of a save: part-00002.bin, an index of what it stored with its part of
// the training state as the note. Rank 0 joins all of them.
//
// Errors   as shard_index.h; Error{kInvalid} for a note that no rank writes
#pragma once

#include <memory>
#include <span>
#include <string>

#include "skein/base/file.h"
#include "skein/checkpoint/file_ops.h"
#include "skein/checkpoint/manifest.h"
#include "skein/checkpoint/shard_index.h"

namespace skein {

// The bytes of a part. It lists the tensors without shards as well, which others are to have
// stored: one that nobody stored would be missed by nobody.
std::string part_bytes(const Manifest& own);

class SavePart {
 public:
  explicit SavePart(MappedFile file);      // another rank's
  explicit SavePart(const Manifest& own);  // rank 0's

  const ShardIndex& index() const { return *index_; }
  TrainingState& state() { return state_; }
  Manifest manifest() const;
  // Its bytes leave this process's memory until they are asked for again.
  void let_go() const { file_.forget(file_.bytes()); }

 private:
  void open(std::span<const std::byte> bytes, const std::string& what);

  MappedFile file_;
  std::string own_;
  std::unique_ptr<ShardIndex> index_;
  TrainingState state_;
};

}  // namespace skein
