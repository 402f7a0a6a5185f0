#include "skein/checkpoint/save_part.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "skein/base/error.h"
#include "skein/base/hash.h"
#include "skein/checkpoint/merge_parts.h"

namespace skein {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;

// The part of the state that this rank brings, as a manifest without tensors.
std::string note_of(const Manifest& own) {
  Json not_stored = Json::array();
  for (const ManifestTensor& tensor : own.tensors) {
    if (tensor.shards.empty()) not_stored.push_back(hash_name(tensor.name));
  }
  Manifest note{.state = own.state};
  const auto& first = own.state.first_lane;
  note.state.lanes = Json{{"first_lane", first ? Json(*first) : Json()},
                          {"lanes", first ? own.state.lanes : Json()},
                          {"not_stored", std::move(not_stored)}};
  note.state.configuration = Json();  // rank 0's is written
  return manifest_text(note);
}

void check_not_stored(std::span<const SavePart> parts, const std::unordered_set<uint64_t>& stored) {
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    for (const uint64_t name : parts[rank].not_stored()) {
      if (stored.contains(name)) continue;
      fail(ErrorCode::kInvalid,
           "rank {} has a tensor (hash {:016x}) that no rank stored: the checkpoint would lack it",
           rank, name);
    }
  }
}

}  // namespace

std::string part_bytes(const Manifest& own) {
  Manifest stored = own;
  std::erase_if(stored.tensors, [](const ManifestTensor& tensor) { return tensor.shards.empty(); });
  return shard_index_of(stored, note_of(own));
}

SavePart::SavePart(MappedFile file) : file_(std::move(file)) {
  open(file_.bytes(), file_.path().string());
}

SavePart::SavePart(const Manifest& own) : own_(part_bytes(own)) {
  own_.shrink_to_fit();
  open(std::as_bytes(std::span(own_)), "the part of rank 0");
  state_.configuration = own.state.configuration;
}

void SavePart::open(std::span<const std::byte> bytes, const std::string& what) {
  index_ = std::make_unique<ShardIndex>(bytes, what);
  state_ = parse_manifest(index_->note(), what).state;
  const Json sent = std::move(state_.lanes);
  const auto is_whole = [](const Json& value) { return value.is_number_unsigned(); };
  const auto bad = [&] { fail(ErrorCode::kInvalid, "{}: its note is not a rank's", what); };
  if (!sent.is_object() || !sent.contains("first_lane") || !sent.contains("lanes") ||
      !sent.contains("not_stored")) {
    bad();
  }
  const Json &first = sent["first_lane"], &not_stored = sent["not_stored"];
  if (!(first.is_null() || first.is_number_integer()) || !not_stored.is_array() ||
      !std::all_of(not_stored.begin(), not_stored.end(), is_whole)) {
    bad();
  }
  state_.lanes = sent["lanes"];
  state_.first_lane.reset();
  if (!first.is_null()) state_.first_lane = first.get<int64_t>();
  for (const Json& name : not_stored) not_stored_.push_back(name.get<uint64_t>());
}

Manifest SavePart::manifest() const {
  Manifest manifest{.state = state_};
  for (int64_t i = 0; i < index_->num_files(); ++i) manifest.files.push_back(index_->file(i));
  for (int64_t i = 0; i < index_->num_tensors(); ++i) {
    IndexTensor from = index_->tensor(i);
    ManifestTensor tensor{from.name, from.dtype, from.shape, {}};
    for (int64_t j = 0; j < from.num_shards; ++j) {
      const IndexShard stored = index_->shard(from, j);
      const Slice& box = from.boxes[stored.box];
      Shard shard{manifest.files[stored.file].name, box, stored.begin, index_->end_of(from, stored),
                  hex_of_digest(stored.xxh3_128)};
      if (stored.range.count != box.shape.num_elements()) shard.range = stored.range;
      tensor.shards.push_back(std::move(shard));
    }
    manifest.tensors.push_back(std::move(tensor));
  }
  return manifest;
}

Manifest join_parts(std::vector<SavePart> parts) {
  std::vector<Manifest> manifests;
  for (const SavePart& part : parts) manifests.push_back(part.manifest());
  Manifest merged = merge_parts(std::move(manifests));
  std::unordered_set<uint64_t> stored;
  for (const ManifestTensor& tensor : merged.tensors) stored.insert(hash_name(tensor.name));
  check_not_stored(parts, stored);
  return merged;
}

namespace {

// The parts' tensors and files under the numbers that they get in the whole.
class Join {
 public:
  explicit Join(std::span<const SavePart> parts) : parts_(parts) {
    for (uint32_t rank = 0; rank < parts.size(); ++rank) add(rank);
  }

  const std::vector<ManifestFile>& files() const { return files_; }
  const std::vector<IndexTensor>& tensors() const { return tensors_; }

  // The shards of a tensor, in order.
  std::vector<IndexShard> shards_of(size_t tensor) const {
    const std::map<Key, uint32_t> boxes = numbers(tensors_[tensor].boxes);
    std::vector<IndexShard> shards;
    for (const Source& source : sources_[tensor]) {
      const ShardIndex& index = parts_[source.rank].index();
      const IndexTensor from = index.tensor(source.tensor);
      for (int64_t i = 0; i < from.num_shards; ++i) {
        IndexShard shard = index.shard(from, i);
        shard.box = boxes.at(key_of(from.boxes[shard.box]));
        shard.file += first_file_[source.rank];
        shards.push_back(shard);
      }
    }
    std::sort(shards.begin(), shards.end(), [](const IndexShard& a, const IndexShard& b) {
      return std::pair(a.box, a.range.begin) < std::pair(b.box, b.range.begin);
    });
    return shards;
  }

 private:
  struct Source {
    uint32_t rank, tensor;
  };
  using Key = std::pair<std::vector<int64_t>, std::vector<int64_t>>;
  static Key key_of(const Slice& box) { return {box.offset, box.shape.dims()}; }
  static std::map<Key, uint32_t> numbers(const std::vector<Slice>& boxes) {
    std::map<Key, uint32_t> numbers;
    for (uint32_t i = 0; i < boxes.size(); ++i) numbers.emplace(key_of(boxes[i]), i);
    return numbers;
  }

  void add(uint32_t rank) {
    const ShardIndex& index = parts_[rank].index();
    first_file_.push_back(static_cast<uint32_t>(files_.size()));
    for (int64_t i = 0; i < index.num_files(); ++i) files_.push_back(index.file(i));
    for (int64_t i = 0; i < index.num_tensors(); ++i) {
      IndexTensor tensor = index.tensor(i);
      const auto [known, is_new] = by_name_.emplace(tensor.name, tensors_.size());
      if (is_new) {
        tensors_.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
        sources_.emplace_back();
        known_boxes_.emplace_back();
      }
      IndexTensor& whole = tensors_[known->second];
      check_same_tensor(rank, {tensor.name, tensor.dtype, tensor.shape, {}}, whole.dtype,
                        whole.shape);
      for (Slice& box : tensor.boxes) {
        auto& boxes = known_boxes_[known->second];
        if (boxes.emplace(key_of(box), 0).second) whole.boxes.push_back(std::move(box));
      }
      whole.num_shards += tensor.num_shards;
      sources_[known->second].push_back({rank, static_cast<uint32_t>(i)});
    }
  }

  std::span<const SavePart> parts_;
  std::vector<ManifestFile> files_;
  std::vector<uint32_t> first_file_;  // by rank
  std::vector<IndexTensor> tensors_;
  std::vector<std::vector<Source>> sources_;          // by tensor
  std::vector<std::map<Key, uint32_t>> known_boxes_;  // by tensor
  std::unordered_map<std::string, size_t> by_name_;
};

void seek(int fd, int64_t offset, const fs::path& path) {
  if (::lseek(fd, offset, SEEK_SET) < 0) {
    fail(errno_code(errno), "cannot write {}: {}", path.string(), errno_text(errno));
  }
}

// The head has the checksums of what stands behind it, and is written last.
void write_index(const Join& join, const fs::path& path, const FileOps& ops) {
  const FileDescriptor file = ops.create(path);
  ShardIndexWriter writer(join.files(), join.tensors(), "");
  seek(file.get(), writer.head_bytes(), path);
  std::string waiting;
  const auto flush = [&] {
    ops.write(file.get(), std::as_bytes(std::span(waiting)), path);
    waiting.clear();
  };
  const auto write = [&](std::span<const std::byte> bytes) {
    waiting.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (waiting.size() >= kWriteBytes) flush();
  };
  for (size_t tensor = 0; tensor < join.tensors().size(); ++tensor) {
    for (const IndexShard& shard : join.shards_of(tensor)) writer.add(shard, write);
  }
  const std::string head = writer.finish(write);
  flush();
  seek(file.get(), 0, path);
  ops.write(file.get(), std::as_bytes(std::span(head)), path);
  ops.sync(file.get(), path);
}

}  // namespace

Manifest join_parts(std::vector<SavePart> parts, const fs::path& index_path, const FileOps& ops) {
  Manifest merged;
  std::vector<TrainingState> states;
  for (SavePart& part : parts) states.push_back(std::move(part.state()));
  merged.state = merge_states(std::move(states));
  const Join join(parts);
  std::unordered_set<uint64_t> stored;
  for (const IndexTensor& tensor : join.tensors()) {
    stored.insert(hash_name(tensor.name));
    merged.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {}});
  }
  check_not_stored(parts, stored);
  write_index(join, index_path, ops);
  // As a reader finds it.
  const MappedFile written(index_path);
  const ShardIndex index(written.bytes(), "the merged " + index_path.filename().string());
  check_whole(index);
  merged.index = {.file_bytes = static_cast<int64_t>(written.bytes().size()),
                  .head_bytes = index.head_bytes(),
                  .head_xxh3_128 = hex_of_digest(index.head_digest())};
  return merged;
}

}  // namespace skein
