// The table of a checkpoint's shards in binary: index.bin beside manifest.json, and each rank's
// report to rank 0 (part-00002.bin). A reader opens the head, some MB for thousands of ranks, and
// only the blocks of shards that it needs.
//
// Format   docs/checkpoint_format.md: a head (files, tensors, their boxes, a note, checksums of the
//          shards by blocks), then 48 bytes per shard, by tensor, box and first element
// Errors   Error{kCorrupt} if a checksum does not match, Error{kInvalid} for what cannot be an
//          index; the head is checked when the index is opened, a block when it is first needed
// Threads  several threads may read one index
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/checkpoint/format/manifest.h"

namespace skein {

using Digest = std::array<std::byte, 16>;  // in the order of its hexadecimal digits
Digest digest_of_hex(std::string_view hex);
std::string hex_of_digest(const Digest& digest);

// A range of the elements of one box of one tensor, row by row, in one contiguous run of a file.
struct IndexShard {
  uint32_t box = 0;   // index among the tensor's boxes
  uint32_t file = 0;  // index among the index's files
  FlatRange range;
  int64_t begin = 0;  // bytes from the start of the file
  Digest xxh3_128 = {};

  bool operator==(const IndexShard&) const = default;
};

struct IndexTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // global
  std::vector<Box> boxes;
  int64_t first_shard = 0;
  int64_t num_shards = 0;
};

// "[0:512, 128:256]", and the range of its elements if it is not all of them.
std::string describe(const IndexTensor& tensor, const IndexShard& shard);

class ShardIndex {
 public:
  static constexpr int64_t kShardBytes = 48;
  static constexpr int64_t kBlockShards = 256;

  // `bytes` must outlive the index; `what` names them in errors.
  ShardIndex(std::span<const std::byte> bytes, std::string what);

  int64_t num_files() const { return num_files_; }
  int64_t num_tensors() const { return num_tensors_; }
  int64_t num_shards() const { return num_shards_; }
  int64_t head_bytes() const { return head_bytes_; }
  const Digest& head_digest() const { return head_digest_; }
  const std::string& what() const { return what_; }
  std::string_view note() const { return note_; }

  ManifestFile file(int64_t i) const;
  IndexTensor tensor(int64_t i) const;
  std::string_view tensor_name(int64_t i) const;
  int64_t num_shards_of(int64_t i) const;
  // Whether `other` lists the same tensors, boxes and numbers of shards, as ranks do that save the
  // same parts of a stage. Then the numbers of tensors and boxes mean the same in both.
  bool lists_same_tensors(const ShardIndex& other) const;
  uint64_t listing_hash() const;  // equal if they do
  // Shard i of `tensor`, which is one of this index.
  IndexShard shard(const IndexTensor& tensor, int64_t i) const;
  int64_t end_of(const IndexTensor& tensor, const IndexShard& shard) const {
    return shard.begin + shard.range.count * size_of(tensor.dtype);
  }

  std::span<const std::byte> shards_of(const IndexTensor& tensor) const {
    return bytes_.subspan(head_bytes_ + tensor.first_shard * kShardBytes,
                          tensor.num_shards * kShardBytes);
  }

  // Visits, once each, the shards that may hold elements of a box of the tensor. If the shards are
  // in order, all that do are visited.
  void for_each_near(const IndexTensor& tensor, const Box& wanted,
                     const std::function<void(const IndexShard&)>& visit) const;

 private:
  void check_head();
  uint64_t word(int64_t offset) const;
  int64_t count(int64_t offset) const;  // a word; must not exceed the file size
  std::string_view name(int64_t entry) const;
  void read_tensor(int64_t i, IndexTensor& tensor) const;  // reuses the memory of `tensor`
  std::span<const std::byte> table() const {               // of tensors, without their names
    return bytes_.subspan(tensors_at_, sizes_at_ + num_sizes_ * 8 - tensors_at_);
  }
  IndexShard read_shard(int64_t i) const;
  void check_block(int64_t block) const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::span<const std::byte> bytes_;
  std::string what_;
  int64_t num_files_ = 0, num_tensors_ = 0, num_sizes_ = 0, num_shards_ = 0, head_bytes_ = 0;
  int64_t files_at_ = 0, tensors_at_ = 0, sizes_at_ = 0, blocks_at_ = 0;
  std::string_view names_, note_;
  Digest head_digest_ = {};
  std::unique_ptr<std::atomic<bool>[]> block_is_good_;
};

// Writes an index: first the head's counts, then every shard in order, and last the head itself,
// which has the checksums of the shards.
class ShardIndexWriter {
 public:
  using Write = std::function<void(std::span<const std::byte>)>;
  // num_shards of each tensor must be set; first_shard follows from the order.
  ShardIndexWriter(std::span<const ManifestFile> files, std::span<const IndexTensor> tensors,
                   std::string_view note);

  int64_t head_bytes() const { return static_cast<int64_t>(head_.size()); }
  // Hands whole blocks to `write`, to be written after the head.
  void add(const IndexShard& shard, const Write& write);
  // Returns the head; to be called when all shards were added.
  std::string finish(const Write& write);

 private:
  void put(uint64_t word);
  void end_block(const Write& write);

  std::string head_, block_;
  int64_t blocks_at_ = 0, num_shards_ = 0, num_added_ = 0;
};

// The same for a manifest in memory, whose shards may be in any order; `note` as ShardIndex::note.
std::string shard_index_of(const Manifest& manifest, std::string_view note);

// Throws Error{kInvalid} unless shards are in order, cover every box of their tensor and every byte
// after their files' headers exactly once, and boxes cover their tensors exactly once. Reads
// everything; `done_with` is called with shards that will not be read again.
void check_whole(const ShardIndex& index,
                 const std::function<void(std::span<const std::byte>)>& done_with = {});

}  // namespace skein
