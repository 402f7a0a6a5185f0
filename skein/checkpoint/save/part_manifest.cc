#include "skein/checkpoint/save/part_manifest.h"

#include "skein/base/numbers/hash.h"

namespace skein {
namespace {

std::vector<Shard> shards_of(const TensorSpec& spec, bool in_boxes) {
  std::vector<Shard> shards;
  if (in_boxes) {
    for (const Box& box : spec.stored_boxes()) shards.push_back({.slice = box});
  } else {
    shards.push_back({.slice = spec.slice, .range = spec.stored_range()});
  }
  return shards;
}

}  // namespace

void add_file(const CheckpointLayout& layout, const CheckpointFile& file,
              std::span<const std::byte> snapshot, bool in_boxes, const StoreShards& store,
              Manifest& manifest) {
  const std::string& header = file.layout.header;
  manifest.files.push_back({file.name, file.layout.file_bytes, static_cast<int64_t>(header.size()),
                            xxh3_128_hex(std::as_bytes(std::span(header)))});
  for (const size_t position : file.layout.order) {
    const size_t index = file.specs[position];
    const TensorSpec& spec = layout.specs[index];
    std::vector<Shard> shards = shards_of(spec, in_boxes);
    std::vector<int64_t> bytes;
    for (const Shard& shard : shards) bytes.push_back(shard.elements().count * size_of(spec.dtype));
    const std::vector<std::string> checksums = store(
        spec, snapshot.subspan(layout.snapshot_begin[index], layout.spec_bytes[index]), bytes);
    int64_t begin = file.layout.begin[position];
    for (size_t i = 0; i < shards.size(); ++i) {
      shards[i].file = file.name;
      shards[i].begin = begin;
      shards[i].end = begin += bytes[i];
      shards[i].xxh3_128 = checksums[i];
    }
    manifest.tensors.push_back({spec.name, spec.dtype, spec.shape, std::move(shards)});
  }
}

void add_tensors_of_others(const CheckpointLayout& layout, Manifest& manifest) {
  for (size_t i = 0; i < layout.specs.size(); ++i) {
    const TensorSpec& spec = layout.specs[i];
    if (layout.spec_bytes[i] == 0) {
      manifest.tensors.push_back({spec.name, spec.dtype, spec.shape, {}});
    }
  }
}

}  // namespace skein
