#include "skein/checkpoint/checkpoint_reader.h"

#include "skein/base/hash.h"
#include "skein/checkpoint/convert.h"
#include "skein/checkpoint/safetensors.h"

namespace skein {

CheckpointReader::CheckpointReader(const fs::path& path) : path_(path), hold_(path) {
  const fs::path file = path / "manifest.json";
  manifest_ = parse_manifest(read_file(hold_.open("manifest.json"), file), file.string());
  for (size_t i = 0; i < manifest_.tensors.size(); ++i) index_[manifest_.tensors[i].name] = i;
  for (size_t i = 0; i < manifest_.files.size(); ++i) file_index_[manifest_.files[i].name] = i;
}

const ManifestTensor* CheckpointReader::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &manifest_.tensors[found->second];
}

const MappedFile& CheckpointReader::file(const std::string& name) const {
  const std::lock_guard lock(maps_->mutex);
  const auto known = maps_->files.find(name);
  if (known != maps_->files.end()) return known->second;
  const fs::path path = path_ / name;
  MappedFile file(hold_.open(name), path);
  const ManifestFile& expected = manifest_.files[file_index_.at(name)];
  if (static_cast<int64_t>(file.bytes().size()) != expected.file_bytes) {
    fail(ErrorCode::kCorrupt, "{} has {} bytes, expected {}", path.string(), file.bytes().size(),
         expected.file_bytes);
  }
  if (xxh3_128_hex(file.bytes().first(expected.header_bytes)) != expected.header_xxh3_128) {
    fail(ErrorCode::kCorrupt, "{}: its header does not match its checksum", path.string());
  }
  return maps_->files.emplace(name, std::move(file)).first->second;
}

void CheckpointReader::read(std::string_view name, const Slice& box, DType dtype,
                            std::span<std::byte> target) const {
  const ManifestTensor* tensor = find(name);
  if (tensor == nullptr) {
    fail(ErrorCode::kNotFound, "{} has no tensor \"{}\"", path_.string(), name);
  }
  const std::string_view stored = to_safetensors_dtype(tensor->dtype);
  if (!box.inside(tensor->shape) || !can_convert(stored, dtype)) {
    fail(ErrorCode::kInvalid, "{}: tensor \"{}\" is {} {}: cannot read {} of it as {}",
         path_.string(), name, dtype_name(tensor->dtype), tensor->shape.to_string(),
         box.to_string(), dtype_name(dtype));
  }
  if (static_cast<int64_t>(target.size()) != box.shape.num_elements() * size_of(dtype)) {
    fail(ErrorCode::kInternal, "tensor \"{}\": {} bytes given for {} of {}", name, target.size(),
         dtype_name(dtype), box.shape.to_string());
  }
  for (const Shard& shard : tensor->shards) {
    const std::optional<Slice> shared = intersect(shard.slice, box);
    if (!shared) continue;
    const MappedFile& mapped = file(shard.file);
    const auto bytes = mapped.bytes().subspan(shard.begin, shard.end - shard.begin);
    if (*shared == shard.slice && xxh3_128_hex(bytes) != shard.xxh3_128) {
      fail(ErrorCode::kCorrupt, "{}: tensor \"{}\" {} does not match its checksum",
           (path_ / shard.file).string(), name, shard.slice.to_string());
    }
    for_each_run(shard.slice, box, [&](int64_t from, int64_t to, int64_t count) {
      convert_elements(stored, bytes.data() + from * size_of(tensor->dtype), dtype,
                       target.data() + to * size_of(dtype), count);
    });
    mapped.forget(bytes);  // a checkpoint is as large as the state that it fills
  }
}

void CheckpointReader::read_range(std::string_view name, const Box& box, FlatRange range,
                                  DType dtype, std::span<std::byte> target) const {
  if (static_cast<int64_t>(target.size()) != range.count * size_of(dtype)) {
    fail(ErrorCode::kInternal, "tensor \"{}\": {} bytes given for {} elements of {}", name,
         target.size(), range.count, dtype_name(dtype));
  }
  for (const Slice& part : boxes_of_range(box, range)) {
    const auto bytes = static_cast<size_t>(part.shape.num_elements() * size_of(dtype));
    read(name, part, dtype, target.first(bytes));
    target = target.subspan(bytes);
  }
}

}  // namespace skein
