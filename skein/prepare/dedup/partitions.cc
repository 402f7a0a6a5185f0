#include "skein/prepare/dedup/partitions.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "skein/base/error.h"
#include "skein/base/units.h"

namespace skein {
namespace {

constexpr int64_t kMinBlockBytes = 4 << 10, kMaxBlockBytes = 128 << 10;
constexpr auto kPairBytes = static_cast<int64_t>(sizeof(KeyValue));

}  // namespace

void read_spool(const Spool& spool, int64_t offset_bytes, std::span<std::byte> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const auto count = retry_interrupted([&] {
      return ::pread(spool.fd(), bytes.data() + done, bytes.size() - done,
                     offset_bytes + static_cast<int64_t>(done));
    });
    if (count <= 0) {
      fail(ErrorCode::kIo, "cannot read {} (a temporary file): {}", spool.path().string(),
           count < 0 ? errno_text(errno) : "it is shorter than it was written");
    }
    done += static_cast<size_t>(count);
  }
}

Partitions::Partitions(const fs::path& out, int64_t memory_bytes)
    : spool_(unique_partial(out)),
      block_pairs_(
          static_cast<size_t>(std::clamp(memory_bytes / 4 / static_cast<int64_t>(kNumPartitions),
                                         kMinBlockBytes, kMaxBlockBytes) /
                              kPairBytes)),
      chunk_pairs_(static_cast<size_t>(std::max<int64_t>(memory_bytes / 2 / kPairBytes, 1024))) {}

void Partitions::add(KeyValue pair) {
  const size_t partition = pair.key >> (64 - kRadixBits);
  std::vector<KeyValue>& pending = pending_[partition];
  if (pending.capacity() == 0) pending.reserve(block_pairs_);
  pending.push_back(pair);
  ++num_pairs_;
  if (pending.size() == block_pairs_) write_block(partition);
}

void Partitions::write_block(size_t partition) {
  std::vector<KeyValue>& pending = pending_[partition];
  if (pending.empty()) return;
  blocks_[partition].push_back({spool_.num_bytes(), static_cast<int64_t>(pending.size())});
  spool_.append({reinterpret_cast<const char*>(pending.data()), pending.size() * sizeof(KeyValue)});
  pending.clear();
}

void Partitions::finish_writing() {
  for (size_t partition = 0; partition < kNumPartitions; ++partition) {
    write_block(partition);
    pending_[partition] = {};
  }
  spool_.flush();
  block_.resize(block_pairs_);
  is_written_ = true;
}

std::span<KeyValue> Partitions::next_chunk(const std::function<bool(const KeyValue&)>& keeps) {
  if (!is_written_) finish_writing();
  chunk_.clear();
  while (chunk_.empty() && partition_ < kNumPartitions) {
    if (part_bits_ < 0) {
      size_t num_pairs = 0;
      for (const Block& block : blocks_[partition_])
        num_pairs += static_cast<size_t>(block.num_pairs);
      // Twice as many parts as would do if all were alike.
      part_bits_ = num_pairs <= chunk_pairs_
                       ? 0
                       : std::bit_width((2 * num_pairs + chunk_pairs_ - 1) / chunk_pairs_);
    }
    read_part(partition_, keeps);
    if (++part_ >> part_bits_ != 0) {
      ++partition_;
      part_ = 0;
      part_bits_ = -1;
    }
  }
  if (chunk_.empty()) chunk_ = {};  // its memory, too
  return chunk_;
}

void Partitions::read_part(size_t partition, const std::function<bool(const KeyValue&)>& keeps) {
  const auto part_of = [&](uint64_t key) {
    return part_bits_ == 0 ? 0 : key << kRadixBits >> (64 - part_bits_);
  };
  for (const Block& block : blocks_[partition]) {
    const std::span<KeyValue> pairs(block_.data(), static_cast<size_t>(block.num_pairs));
    read_spool(spool_, block.offset_bytes, std::as_writable_bytes(pairs));
    for (const KeyValue& pair : pairs) {
      if (part_of(pair.key) != part_ || !keeps(pair)) continue;
      if (chunk_.size() == chunk_pairs_) {
        fail(ErrorCode::kUsage,
             "--memory is too small: more than {} of pairs that must be sorted together; expected "
             "several times as much, or fewer documents that are alike",
             format_bytes(static_cast<int64_t>(chunk_pairs_) * kPairBytes));
      }
      if (chunk_.capacity() == chunk_.size()) {
        chunk_.reserve(std::min(chunk_pairs_, std::max<size_t>(1024, chunk_.size() * 3 / 2)));
      }
      chunk_.push_back(pair);
    }
  }
  std::sort(chunk_.begin(), chunk_.end());
}

void Partitions::for_each_chunk(const std::function<bool(const KeyValue&)>& keeps,
                                const std::function<void(std::span<KeyValue>)>& visit) {
  for (std::span<KeyValue> chunk = next_chunk(keeps); !chunk.empty(); chunk = next_chunk(keeps)) {
    visit(chunk);
  }
}

}  // namespace skein
