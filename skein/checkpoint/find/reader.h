// Reads checkpoints: verifies one, and reads any box of any tensor whatever layout saved it.
//
// Where    a folder, or the objects of a bucket under s3://…/step-00001000
// Beside   a running job: a checkpoint that is open here is not removed (hold.h)
// Errors   CheckpointReader throws: Error{kNotFound} for a missing file or tensor, kInvalid for a
//          malformed manifest or request, kCorrupt for bytes that do not match their checksum.
//          verify_checkpoint returns them, because recovery branches on them.
// Memory   the manifest; of an index its head and the blocks of shards that are needed; of one in a
//          bucket all of it
// Threads  several threads may read from one CheckpointReader.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/checkpoint/find/checkpoint_folder.h"
#include "skein/checkpoint/find/hold.h"
#include "skein/checkpoint/find/source.h"
#include "skein/checkpoint/format/manifest.h"
#include "skein/checkpoint/format/shard_index.h"

namespace skein {

struct VerifyReport {
  int64_t step = 0;
  int64_t num_bytes = 0;
  int64_t num_shards = 0;
  double seconds = 0;
};

// Reads every byte of the checkpoint and compares checksums, file sizes, and each safetensors
// header with the manifest. Uses ordinary reads, so that a failing disk is an error and not a
// signal. `num_threads` 0: one per core, at most 8.
Result<VerifyReport> verify_checkpoint(const fs::path& path, int num_threads = 0);

class CheckpointReader {
 public:
  explicit CheckpointReader(const fs::path& path);
  // Of a checkpoint that lies in no folder; `name` stands for its path.
  CheckpointReader(std::unique_ptr<CheckpointSource> source, Manifest manifest,
                   const std::string& name);

  const fs::path& path() const { return path_; }
  // Where there are many shards, the manifest has no shards and files: see `shards()`.
  const Manifest& manifest() const { return manifest_; }
  const ShardIndex& shards() const { return *shards_; }
  const TrainingState& state() const { return manifest_.state; }
  int64_t total_bytes() const;                              // of all tensor files
  const ManifestTensor* find(std::string_view name) const;  // nullptr if there is none

  // The shards that hold elements of a range of a box of a tensor; opens none of their files.
  std::vector<IndexShard> find_shards(std::string_view name, const Box& box, FlatRange range) const;

  // Fills `target` (dense, row-major) with a box of a tensor, assembled from whichever shards hold
  // it. Reads only the bytes that it needs, and compares the checksums of shards that are read
  // whole. Elements are converted where `dtype` differs from the stored one
  // (skein/checkpoint/format/convert.h).
  void read(std::string_view name, const Box& box, DType dtype, std::span<std::byte> target) const;

  // The same for a range of the elements of a box, row by row: what a rank holds of a Flat value,
  // or any other segment. `target` has range.count elements.
  void read_range(std::string_view name, const Box& box, FlatRange range, DType dtype,
                  std::span<std::byte> target) const;

 private:
  struct Request;
  void list_shards(const std::string& what);
  void open_index();
  int64_t copy_shard(const IndexTensor& tensor, const IndexShard& shard,
                     const Request& request) const;

  fs::path path_;
  std::shared_ptr<const CheckpointHold> hold_;  // null: it lies in no folder
  Manifest manifest_;
  std::string own_index_;  // built from a manifest that lists its shards, or an object
  MappedFile index_file_;
  std::optional<ShardIndex> shards_;
  std::unordered_map<std::string, int64_t> tensors_;  // in the manifest and in shards_
  std::unique_ptr<CheckpointSource> source_;
};

}  // namespace skein
