// Sorts more pairs of key and value than fit in memory: a radix sort by the upper bits of the key
// on disk, then a sort in memory of a chunk at a time.
//
// Disk     16 bytes a pair, in one temporary file without a name beside the output
// Memory   up to a quarter of `memory_bytes` while pairs are added, half of it while they are read
// Cost     each pair is written once and read once; keys should be spread over all 64 bits. A
//          partition that is larger than a chunk is read once for each of its chunks.
// Errors   Error{kIo | kNoSpace} naming the file; Error{kUsage} if one key has more pairs than fit
// Threads  one at a time
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "skein/data/corpus_writer.h"

namespace skein {

struct KeyValue {
  uint64_t key = 0;
  uint64_t value = 0;
  auto operator<=>(const KeyValue&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Reads items that were appended to a spool; `spool` must have been flushed.
void read_spool(const Spool& spool, int64_t offset_bytes, std::span<std::byte> bytes);

class Partitions {
 public:
  // `out`: beside which file.
  Partitions(const fs::path& out, int64_t memory_bytes);

  void add(KeyValue pair);

  // Calls visit(pairs) with all pairs in ascending order, in chunks that hold all pairs of their
  // keys. Pairs for which `keeps` is false are left out. Visit may change the chunk.
  void for_each_chunk(const std::function<bool(const KeyValue&)>& keeps,
                      const std::function<void(std::span<KeyValue>)>& visit);

  // The same, chunk by chunk: nothing at the end. Valid until the next call.
  std::span<KeyValue> next_chunk(const std::function<bool(const KeyValue&)>& keeps);

  int64_t num_pairs() const { return num_pairs_; }

 private:
  static constexpr int kRadixBits = 8;
  static constexpr size_t kNumPartitions = size_t{1} << kRadixBits;

  void write_block(size_t partition);
  void finish_writing();
  void read_part(size_t partition, const std::function<bool(const KeyValue&)>& keeps);

  Spool spool_;
  size_t block_pairs_;  // of a full block
  size_t chunk_pairs_;
  std::array<std::vector<KeyValue>, kNumPartitions> pending_;
  struct Block {
    int64_t offset_bytes, num_pairs;
  };
  std::array<std::vector<Block>, kNumPartitions> blocks_;
  std::vector<KeyValue> chunk_;
  std::vector<KeyValue> block_;
  size_t partition_ = 0;  // that is read next
  uint64_t part_ = 0;     // of it, of 2^part_bits_
  int part_bits_ = -1;    // -1: not known yet
  int64_t num_pairs_ = 0;
  bool is_written_ = false;
};

}  // namespace skein
