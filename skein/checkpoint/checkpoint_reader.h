// Reading checkpoints: whether one is good, and any box of any tensor whatever layout saved it.
//
// Beside   a run that goes on: a checkpoint that is open here is not removed (checkpoint_hold.h)
// Errors   CheckpointReader throws: Error{kNotFound} for a missing file or tensor, kInvalid for a
//          manifest or a request that is not right, kCorrupt for bytes that do not match their
//          checksum. verify_checkpoint returns them: recovery branches on it.
// Threads  a CheckpointReader may be read by several threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/checkpoint/checkpoint_folder.h"
#include "skein/checkpoint/checkpoint_hold.h"
#include "skein/checkpoint/manifest.h"

namespace skein {

struct VerifyReport {
  int64_t step = 0;
  int64_t num_bytes = 0;
  int64_t num_shards = 0;
  double seconds = 0;
};

// Reads every byte of the checkpoint and compares checksums, file sizes, and each safetensors
// header with the manifest. With ordinary reads, so that a failing disk is an error and not a
// signal. `num_threads` 0: one a core, at most 8.
Result<VerifyReport> verify_checkpoint(const fs::path& path, int num_threads = 0);

class CheckpointReader {
 public:
  explicit CheckpointReader(const fs::path& path);

  const fs::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  const TrainingState& state() const { return manifest_.state; }
  const ManifestTensor* find(std::string_view name) const;  // nullptr where there is none

  // Fills `target` (dense, row-major) with a box of a tensor, assembled from whichever shards hold
  // it, reading only the bytes it needs; checksums of shards that are read whole are compared.
  // Elements are converted where `dtype` is another than the stored one
  // (skein/checkpoint/convert.h).
  void read(std::string_view name, const Slice& box, DType dtype,
            std::span<std::byte> target) const;

  // The same for a range of the elements of a box, row by row: what a rank holds of a Flat value,
  // or a piece of anything. `target` is of range.count elements.
  void read_range(std::string_view name, const Box& box, FlatRange range, DType dtype,
                  std::span<std::byte> target) const;

 private:
  const MappedFile& file(const std::string& name) const;

  fs::path path_;
  CheckpointHold hold_;
  Manifest manifest_;
  std::unordered_map<std::string, size_t> index_;
  std::unordered_map<std::string, size_t> file_index_;

  // Files are mapped when they are first needed.
  struct Maps {
    std::mutex mutex;
    std::map<std::string, MappedFile> files;
  };
  std::unique_ptr<Maps> maps_ = std::make_unique<Maps>();
};

}  // namespace skein
