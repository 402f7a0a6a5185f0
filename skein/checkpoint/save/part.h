// What one rank reports to rank 0 about a save: part-00002.bin, an index of what it stored, with
// its part of the training state as the note. Rank 0 joins all parts.
//
// Errors   as shard_index.h; Error{kInvalid} for a note that no rank writes
#pragma once

#include <memory>
#include <span>
#include <string>

#include "skein/base/files/file.h"
#include "skein/checkpoint/format/file_ops.h"
#include "skein/checkpoint/format/manifest.h"
#include "skein/checkpoint/format/shard_index.h"

namespace skein {

// The bytes of a part. It also lists the tensors of which this rank stores no shards, because
// otherwise nobody would notice a tensor that no rank stored.
std::string part_bytes(const Manifest& own);

class SavePart {
 public:
  explicit SavePart(MappedFile file);      // another rank's
  explicit SavePart(const Manifest& own);  // rank 0's
  SavePart(std::string bytes, const std::string& what);

  const ShardIndex& index() const { return *index_; }
  TrainingState& state() { return state_; }
  Manifest manifest() const;
  // Drops its bytes from this process's memory until they are read again.
  void let_go() const { file_.forget(file_.bytes()); }

 private:
  void open(std::span<const std::byte> bytes, const std::string& what);

  MappedFile file_;
  std::string own_;
  std::unique_ptr<ShardIndex> index_;
  TrainingState state_;
};

}  // namespace skein
