// Sorts more pairs of key and value than fit in memory: a radix sort by the upper bits of the key
// on disk, then a sort in memory of a chunk at a time.
//
// Disk     16 bytes a pair, in one temporary file without a name beside the output
// Memory   up to `pending_bytes` until finish(), then `chunk_bytes` for all threads together and
//          a block (128 KiB at most) each
// Cost     each pair is written once and read once, as long as a partition (a thousandth of the
//          pairs) fits in the chunk of a thread; fewer threads than given are used for that. A
//          larger one is read again for each part of it. Keys should be spread over all 64 bits.
// Errors   Error{kIo | kNoSpace} naming the file; Error{kUsage} if one key has more pairs than fit
//          in `chunk_bytes`, whatever the number of threads
// Threads  add() from any, others one at a time; several Readers at once
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "skein/base/threads/mutex.h"
#include "skein/data/corpus/spool.h"

namespace skein {

struct KeyedValue {
  uint64_t key = 0;
  uint64_t value = 0;
  auto operator<=>(const KeyedValue&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Reads bytes of a spool that was flushed; `spool` stands for them in errors.
void read_spool(const Spool& spool, int64_t offset_bytes, std::span<std::byte> bytes);

class Partitions {
 public:
  using Keeps = std::function<bool(const KeyedValue&)>;

  // `out`: beside which file.
  Partitions(const fs::path& out, int64_t pending_bytes, int64_t chunk_bytes);

  void add(KeyedValue pair);
  void finish();  // behind the last add()

  // Calls visit(pairs) with all pairs, in chunks that are sorted and hold all pairs of their keys.
  // Pairs for which `keeps` is false are left out. Visit may change the chunk. Both are called by
  // several threads at once.
  void for_each_chunk(int num_threads, const Keeps& keeps,
                      const std::function<void(std::span<KeyedValue>)>& visit) const;

  int64_t num_pairs() const;
  size_t chunk_pairs() const { return chunk_pairs_; }

  class Reader;

 private:
  static constexpr int kRadixBits = 10;
  static constexpr size_t kNumPartitions = size_t{1} << kRadixBits;
  struct SpooledBlock {
    int64_t offset_bytes, num_pairs;
  };
  struct Partition {
    mutable Mutex mutex;
    std::vector<KeyedValue> pending SKEIN_GUARDED_BY(mutex);
    std::vector<SpooledBlock> blocks;  // written under the mutex, read once all is written
    int64_t num_pairs = 0;
  };

  void write_block(Partition& partition) SKEIN_REQUIRES(partition.mutex);

  size_t block_pairs_;  // of a full block
  size_t chunk_pairs_;
  Mutex spool_mutex_;
  Spool spool_;
  std::vector<Partition> partitions_ = std::vector<Partition>(kNumPartitions);
};

// Reads the pairs of a range of keys in ascending order, chunk by chunk.
class Partitions::Reader {
 public:
  // A chunk has at most `max_pairs`. The keys of which there are more are passed over and added to
  // `too_large`, where it is given; else each is a chunk, and more than chunk_pairs() are an error.
  Reader(const Partitions& all, uint64_t first_key, uint64_t last_key, size_t max_pairs,
         const Keeps& keeps, std::vector<uint64_t>* too_large = nullptr);

  // All pairs of their keys; nothing at the end. Valid until the next call.
  std::span<KeyedValue> next();

 private:
  struct KeyRange {
    uint64_t first, last;  // keys of one partition
  };
  void begin_partition();
  bool gather(const KeyRange& range);
  void split(const KeyRange& range);

  const Partitions& all_;
  uint64_t first_key_, last_key_;
  size_t max_pairs_;
  const Keeps& keeps_;
  std::vector<uint64_t>* too_large_;
  size_t partition_;              // that is begun next
  std::vector<KeyRange> ranges_;  // of the one before it, the last one first
  std::vector<KeyedValue> chunk_, block_;
};

}  // namespace skein
