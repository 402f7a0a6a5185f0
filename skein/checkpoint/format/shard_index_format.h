// Offsets in the file that shard_index.h reads and writes: docs/checkpoint_format.md.
#pragma once

#include <array>
#include <cstring>
#include <string_view>

#include "skein/checkpoint/format/shard_index.h"

namespace skein::shard_index_format {

constexpr std::string_view kMagic = "SKEINIX1";
constexpr int64_t kDigestAt = 8;  // of the head, from kCountsAt on
constexpr int64_t kCountsAt =
    24;  // head bytes, files, tensors, sizes, name bytes, note bytes, shards
constexpr int64_t kHeaderBytes = kCountsAt + 7 * 8;
constexpr int64_t kFileBytes = 48;    // name begin, name bytes, file bytes, header bytes, digest
constexpr int64_t kTensorBytes = 64;  // name begin, name bytes, dtype, rank, first size, boxes,
                                      // first shard, shards
constexpr uint64_t kMaxTensorRank = 16;
constexpr uint64_t kMaxNameBytes = 1 << 14;
inline constexpr std::array kDTypes = {DType::kF32, DType::kBF16, DType::kI32, DType::kF64};

inline int64_t padded(int64_t bytes) { return (bytes + 7) / 8 * 8; }
inline int64_t blocks_of(int64_t num_shards) {
  return (num_shards + ShardIndex::kBlockShards - 1) / ShardIndex::kBlockShards;
}

// box u32, file u32, first element, elements, first byte, digest
inline IndexShard decode_shard(const std::byte* from) {
  IndexShard shard;
  std::memcpy(&shard.box, from, 4);
  std::memcpy(&shard.file, from + 4, 4);
  std::memcpy(&shard.range.begin, from + 8, 8);
  std::memcpy(&shard.range.count, from + 16, 8);
  std::memcpy(&shard.begin, from + 24, 8);
  std::memcpy(shard.xxh3_128.data(), from + 32, 16);
  return shard;
}

inline void encode_shard(const IndexShard& shard, char* to) {
  std::memcpy(to, &shard.box, 4);
  std::memcpy(to + 4, &shard.file, 4);
  std::memcpy(to + 8, &shard.range.begin, 8);
  std::memcpy(to + 16, &shard.range.count, 8);
  std::memcpy(to + 24, &shard.begin, 8);
  std::memcpy(to + 32, shard.xxh3_128.data(), 16);
}

}  // namespace skein::shard_index_format
