// What a rank stores of a save, as a manifest of its own files.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "skein/checkpoint/format/manifest.h"
#include "skein/checkpoint/save/layout.h"

namespace skein {

// Called with the bytes of each tensor of a file, in the order of the file, and how many bytes each
// of its shards has; returns the shards' checksums.
using StoreShards = std::function<std::vector<std::string>(
    const TensorSpec& spec, std::span<const std::byte> values, std::span<const int64_t> bytes)>;

// Adds a file and its shards to the manifest. `in_boxes`: a shard a box, as in manifest.json, which
// has no ranges; otherwise a shard a tensor, as in an index.
void add_file(const CheckpointLayout& layout, const CheckpointFile& file,
              std::span<const std::byte> snapshot, bool in_boxes, const StoreShards& store,
              Manifest& manifest);
// Adds the tensors of which this rank stores nothing.
void add_tensors_of_others(const CheckpointLayout& layout, Manifest& manifest);

}  // namespace skein
