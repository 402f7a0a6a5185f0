#include "skein/checkpoint/find/reader.h"

#include <sys/mman.h>

#include <algorithm>

#include "skein/base/numbers/hash.h"
#include "skein/checkpoint/format/convert.h"
#include "skein/checkpoint/format/safetensors.h"
#include "skein/objects/url.h"

namespace skein {
namespace {

// The smallest box that contains all of them.
Box hull(const std::vector<Box>& boxes) {
  Box all = boxes.front();
  for (const Box& box : boxes) {
    for (int dim = 0; dim < all.shape.rank(); ++dim) {
      const int64_t begin = std::min(all.offset[dim], box.offset[dim]);
      const int64_t end =
          std::max(all.offset[dim] + all.shape.dim(dim), box.offset[dim] + box.shape.dim(dim));
      all.offset[dim] = begin;
      all.shape.set_dim(dim, end - begin);
    }
  }
  return all;
}

}  // namespace

// Elements of one tensor that are to be read one after the other.
struct CheckpointReader::Request {
  std::vector<Box> boxes;
  DType dtype;
  std::span<std::byte> target;
};

CheckpointReader::CheckpointReader(const fs::path& path)
    : path_(path), hold_(std::make_shared<CheckpointHold>(path)) {
  const fs::path file = path / "manifest.json";
  manifest_ = parse_manifest(hold_->file("manifest.json").text(), file.string());
  source_ = is_object_url(path) ? objects_source(path) : folder_source(hold_, path);
  list_shards(file.string());
}

CheckpointReader::CheckpointReader(std::unique_ptr<CheckpointSource> source, Manifest manifest,
                                   const std::string& name)
    : path_(name), manifest_(std::move(manifest)), source_(std::move(source)) {
  list_shards(name);
}

void CheckpointReader::list_shards(const std::string& what) {
  if (manifest_.index) {
    open_index();
  } else {
    own_index_ = shard_index_of(manifest_, "");
    shards_.emplace(std::as_bytes(std::span(own_index_)), what);
  }
  for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
    tensors_[manifest_.tensors[i].name] = static_cast<int64_t>(i);
  }
}

// The manifest has the checksum of the index's head, and the head those of its blocks.
void CheckpointReader::open_index() {
  const std::string& name = manifest_.index->file;
  const fs::path file = path_ / name;
  if (is_object_url(path_)) {
    own_index_ = hold_->file(name).text();
  } else {
    index_file_ = MappedFile(hold_->open(name), file);
  }
  const auto bytes =
      is_object_url(path_) ? std::as_bytes(std::span(own_index_)) : index_file_.bytes();
  if (static_cast<int64_t>(bytes.size()) != manifest_.index->file_bytes) {
    fail(ErrorCode::kCorrupt, "{} has {} bytes, expected {}", file.string(), bytes.size(),
         manifest_.index->file_bytes);
  }
  // Little of it is read, in scattered places, so reading ahead would not help.
  ::madvise(const_cast<std::byte*>(index_file_.bytes().data()), index_file_.bytes().size(),
            MADV_RANDOM);
  shards_.emplace(bytes, file.string());
  if (shards_->head_bytes() != manifest_.index->head_bytes ||
      hex_of_digest(shards_->head_digest()) != manifest_.index->head_xxh3_128) {
    fail(ErrorCode::kCorrupt, "{} is not the index that manifest.json names: its head is {}, {}",
         file.string(), hex_of_digest(shards_->head_digest()), manifest_.index->head_xxh3_128);
  }
  bool agrees = shards_->num_tensors() == static_cast<int64_t>(manifest_.tensors.size());
  for (int64_t i = 0; agrees && i < shards_->num_tensors(); ++i) {
    const IndexTensor stored = shards_->tensor(i);
    const ManifestTensor& listed = manifest_.tensors[static_cast<size_t>(i)];
    agrees =
        stored.name == listed.name && stored.dtype == listed.dtype && stored.shape == listed.shape;
  }
  if (!agrees) {
    fail(ErrorCode::kCorrupt, "{} and manifest.json name other tensors", file.string());
  }
}

int64_t CheckpointReader::total_bytes() const {
  int64_t bytes = 0;
  for (int64_t i = 0; i < shards_->num_files(); ++i) bytes += shards_->file(i).file_bytes;
  return bytes;
}

const ManifestTensor* CheckpointReader::find(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  return found == tensors_.end() ? nullptr : &manifest_.tensors[found->second];
}

// Copies the shard's part of the request; returns its number of elements.
int64_t CheckpointReader::copy_shard(const IndexTensor& tensor, const IndexShard& shard,
                                     const Request& request) const {
  struct CopiedBytes {
    int64_t from, to, count;
  };
  std::vector<CopiedBytes> copies;
  int64_t stored_at = 0, copied = 0;
  for (const Box& stored : boxes_of_range(tensor.boxes[shard.box], shard.range)) {
    int64_t target_at = 0;
    for (const Box& box : request.boxes) {
      for_each_run(stored, box, [&](int64_t from, int64_t to, int64_t count) {
        copies.push_back({stored_at + from, target_at + to, count});
        copied += count;
      });
      target_at += box.shape.num_elements();
    }
    stored_at += stored.shape.num_elements();
  }
  if (copies.empty()) return 0;
  int64_t first = copies.front().from, end = 0;  // of the elements that are needed
  for (const CopiedBytes& copy : copies) {
    first = std::min(first, copy.from);
    end = std::max(end, copy.from + copy.count);
  }
  const ManifestFile file = shards_->file(shard.file);
  const int64_t element_bytes = size_of(tensor.dtype);
  const auto stored =
      source_->bytes(file, shard.begin + first * element_bytes, (end - first) * element_bytes);
  if (copied == shard.range.count && digest_of_hex(xxh3_128_hex(stored.bytes)) != shard.xxh3_128) {
    fail(ErrorCode::kCorrupt, "{}: tensor \"{}\" {} does not match its checksum",
         (path_ / file.name).string(), tensor.name, describe(tensor, shard));
  }
  for (const CopiedBytes& copy : copies) {
    convert_elements(to_safetensors_dtype(tensor.dtype),
                     stored.bytes.data() + (copy.from - first) * element_bytes, request.dtype,
                     request.target.data() + copy.to * size_of(request.dtype), copy.count);
  }
  source_->forget(file, stored.bytes);
  return copied;
}

std::vector<IndexShard> CheckpointReader::find_shards(std::string_view name, const Box& box,
                                                      FlatRange range) const {
  const IndexTensor tensor = shards_->tensor(tensors_.at(std::string(name)));
  const std::vector<Box> wanted = boxes_of_range(box, range);
  std::vector<IndexShard> found;
  if (wanted.empty()) return found;
  const auto meets = [&](const Box& stored) {
    return std::any_of(wanted.begin(), wanted.end(),
                       [&](const Box& part) { return intersect(stored, part).has_value(); });
  };
  shards_->for_each_near(tensor, hull(wanted), [&](const IndexShard& shard) {
    const auto stored = boxes_of_range(tensor.boxes[shard.box], shard.range);
    if (std::any_of(stored.begin(), stored.end(), meets)) found.push_back(shard);
  });
  index_file_.forget(shards_->shards_of(tensor));
  return found;
}

void CheckpointReader::read(std::string_view name, const Box& box, DType dtype,
                            std::span<std::byte> target) const {
  const ManifestTensor* tensor = find(name);
  if (tensor != nullptr && !box.inside(tensor->shape)) {
    fail(ErrorCode::kInvalid, "{}: tensor \"{}\" is {} {}: cannot read {} of it", path_.string(),
         name, dtype_name(tensor->dtype), tensor->shape.to_string(), box.to_string());
  }
  read_range(name, box, {0, box.shape.num_elements()}, dtype, target);
}

void CheckpointReader::read_range(std::string_view name, const Box& box, FlatRange range,
                                  DType dtype, std::span<std::byte> target) const {
  const auto found = tensors_.find(std::string(name));
  if (found == tensors_.end()) {
    fail(ErrorCode::kNotFound, "{} has no tensor \"{}\"", path_.string(), name);
  }
  const IndexTensor tensor = shards_->tensor(found->second);
  if (!box.inside(tensor.shape) || !can_convert(to_safetensors_dtype(tensor.dtype), dtype)) {
    fail(ErrorCode::kInvalid, "{}: tensor \"{}\" is {} {}: cannot read {} of it as {}",
         path_.string(), name, dtype_name(tensor.dtype), tensor.shape.to_string(), box.to_string(),
         dtype_name(dtype));
  }
  if (static_cast<int64_t>(target.size()) != range.count * size_of(dtype)) {
    fail(ErrorCode::kInternal, "tensor \"{}\": {} bytes given for {} elements of {}", name,
         target.size(), range.count, dtype_name(dtype));
  }
  const Request request{boxes_of_range(box, range), dtype, target};
  if (request.boxes.empty()) return;
  int64_t copied = 0;
  shards_->for_each_near(tensor, hull(request.boxes), [&](const IndexShard& shard) {
    copied += copy_shard(tensor, shard, request);
  });
  index_file_.forget(shards_->shards_of(tensor));
  if (copied != range.count) {
    fail(ErrorCode::kCorrupt, "{}: its shards hold {} of the {} elements of tensor \"{}\" {}",
         path_.string(), copied, range.count, name, box.to_string());
  }
}

}  // namespace skein
