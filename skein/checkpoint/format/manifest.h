// manifest.json: what a checkpoint holds. It is written last; a folder without one that parses and
// verifies is not a checkpoint.
//
// Format   docs/checkpoint_format.md. The first line has the xxh3-128 of every byte after it, so a
//          changed manifest is detected just as a changed tensor is.
// Errors   Error{kCorrupt} if that checksum does not match; Error{kInvalid} naming the key, what
//          was found and what was expected; Error{kUnsupported} for a newer format version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/checkpoint/format/boxes.h"
#include "skein/checkpoint/format/timeline.h"
#include "skein/tensor/dtype.h"

namespace skein {

constexpr int kManifestVersion = 1;
constexpr int kIndexedManifestVersion = 2;  // files and shards are in kIndexName
constexpr const char* kIndexName = "index.bin";

// Everything besides the tensors that a run needs to continue exactly where it stopped.
struct TrainingState {
  int64_t step = 0;           // updates done
  int64_t schedule_step = 0;  // position of the learning-rate schedule
  uint64_t seed = 0;
  int64_t tokens_seen = 0;
  int64_t reduction_width = 1;
  Timeline timeline;
  Json lanes;              // opaque here, except for merge_parts
  Json configuration;      // opaque here
  Json algorithms;         // opaque here: algorithms that kernels measured; rank 0's, null if none
  Json monitor;            // of the gradient norm; opaque here; null: there is none
  Json skipped_batches;    // that no step trains on; opaque here; null: none
  int64_t roll_backs = 0;  // so far, because of divergence
  Json validation;         // opaque but for best_checkpoint.h; null: none is watched
  std::string skein_version;
  // The number of the first of `lanes`, where several ranks save together and each brings its own.
  // Nothing if this rank brings none, because another rank brings the same lanes. Not in the
  // manifest.
  std::optional<int64_t> first_lane = 0;

  bool operator==(const TrainingState&) const = default;
};

// One contiguous run of a file's bytes that holds one box of one tensor, or a range of its
// elements.
struct Shard {
  std::string file;
  Box slice;
  int64_t begin = 0;  // bytes from the start of the file
  int64_t end = 0;
  std::string xxh3_128;
  std::optional<FlatRange> range = std::nullopt;  // only in an index; nothing: all of the box

  FlatRange elements() const { return range.value_or(FlatRange{0, slice.shape.num_elements()}); }
  bool operator==(const Shard&) const = default;
};

struct ManifestTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;                // global
  std::vector<Shard> shards;  // cover the tensor exactly once

  bool operator==(const ManifestTensor&) const = default;
};

struct ManifestFile {
  std::string name;
  int64_t file_bytes = 0;
  int64_t header_bytes = 0;  // shards cover the rest
  std::string header_xxh3_128;

  bool operator==(const ManifestFile&) const = default;
};

// The file with the files and shards where there are many: shard_index.h.
struct ManifestIndex {
  std::string file = kIndexName;
  int64_t file_bytes = 0;
  int64_t head_bytes = 0;
  std::string head_xxh3_128;

  bool operator==(const ManifestIndex&) const = default;
};

struct Manifest {
  TrainingState state;
  std::optional<ManifestIndex> index;  // if set, no files are here, and tensors have no shards
  std::vector<ManifestFile> files;
  std::vector<ManifestTensor> tensors;

  // nullptr if there is none.
  const ManifestTensor* find(std::string_view name) const;
  int64_t total_bytes() const;  // of all files
  bool operator==(const Manifest&) const = default;
};

std::string manifest_text(const Manifest& manifest);

// A plain name that ends in .safetensors.
bool is_shard_file_name(std::string_view name);

// Checks everything that the manifest alone can show: boxes tile their tensors, shards tile their
// files, names are unique and stay inside the folder.
Manifest parse_manifest(std::string_view text, const std::string& what);

}  // namespace skein
