#include "skein/prepare/dedup/clusters/partitions.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/base/threads/parallel_for.h"

namespace skein {
namespace {

constexpr int64_t kMinBlockBytes = 1 << 10, kMaxBlockBytes = 128 << 10;
constexpr auto kPairBytes = static_cast<int64_t>(sizeof(KeyedValue));
constexpr uint64_t kLastKey = std::numeric_limits<uint64_t>::max();

size_t pairs_of(int64_t num_bytes) { return static_cast<size_t>(num_bytes / kPairBytes); }

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

Partitions::Partitions(const fs::path& out, int64_t pending_bytes, int64_t chunk_bytes)
    : block_pairs_(pairs_of(std::clamp(pending_bytes / static_cast<int64_t>(kNumPartitions),
                                       kMinBlockBytes, kMaxBlockBytes))),
      chunk_pairs_(std::max<size_t>(pairs_of(chunk_bytes), 1024)),
      spool_(unique_partial(out)) {}

void Partitions::add(KeyedValue pair) {
  Partition& partition = partitions_[pair.key >> (64 - kRadixBits)];
  const Lock lock(partition.mutex);
  std::vector<KeyedValue>& pending = partition.pending;
  if (pending.capacity() == 0) pending.reserve(block_pairs_);
  pending.push_back(pair);
  if (pending.size() == block_pairs_) write_block(partition);
}

void Partitions::write_block(Partition& partition) {
  std::vector<KeyedValue>& pending = partition.pending;
  if (pending.empty()) return;
  const Lock lock(spool_mutex_);
  partition.blocks.push_back({spool_.num_bytes(), static_cast<int64_t>(pending.size())});
  partition.num_pairs += static_cast<int64_t>(pending.size());
  spool_.append(
      {reinterpret_cast<const char*>(pending.data()), pending.size() * sizeof(KeyedValue)});
  pending.clear();
}

void Partitions::finish() {
  for (Partition& partition : partitions_) {
    const Lock lock(partition.mutex);
    write_block(partition);
    partition.pending = {};
  }
  ::malloc_trim(0);  // small blocks otherwise stay with the process, beside the chunks
  spool_.flush();
}

int64_t Partitions::num_pairs() const {
  int64_t num_pairs = 0;
  for (const Partition& partition : partitions_) num_pairs += partition.num_pairs;
  return num_pairs;
}

void Partitions::for_each_chunk(int num_threads, const Keeps& keeps,
                                const std::function<void(std::span<KeyedValue>)>& visit) const {
  std::vector<uint64_t> first_keys;  // of partitions
  for (size_t i = 0; i < kNumPartitions; ++i) {
    if (partitions_[i].num_pairs > 0) first_keys.push_back(uint64_t{i} << (64 - kRadixBits));
  }
  if (first_keys.empty()) return;
  // A thread's chunk holds a partition, and a quarter more: they differ. A few that are far larger,
  // of keys that many have, are read in parts.
  const size_t of_partition = static_cast<size_t>(num_pairs()) / first_keys.size() + 1;
  const size_t fitting = chunk_pairs_ / (of_partition + of_partition / 4);
  num_threads = static_cast<int>(
      std::clamp<size_t>(fitting, 1, static_cast<size_t>(std::max(1, num_threads))));
  Mutex mutex;
  std::vector<uint64_t> too_large;
  parallel_for_each(first_keys, num_threads, [&](uint64_t first_key) {
    std::vector<uint64_t> passed_over;
    Reader reader(*this, first_key, first_key | kLastKey >> kRadixBits,
                  chunk_pairs_ / static_cast<size_t>(num_threads), keeps, &passed_over);
    for (auto chunk = reader.next(); !chunk.empty(); chunk = reader.next()) visit(chunk);
    const Lock lock(mutex);
    too_large.insert(too_large.end(), passed_over.begin(), passed_over.end());
  });
  // One at a time, with the memory of all threads.
  for (const uint64_t key : too_large) visit(Reader(*this, key, key, chunk_pairs_, keeps).next());
}

Partitions::Reader::Reader(const Partitions& all, uint64_t first_key, uint64_t last_key,
                           size_t max_pairs, const Keeps& keeps, std::vector<uint64_t>* too_large)
    : all_(all),
      first_key_(first_key),
      last_key_(last_key),
      max_pairs_(std::max<size_t>(max_pairs, 2)),
      keeps_(keeps),
      too_large_(too_large),
      partition_(first_key >> (64 - kRadixBits)),
      block_(all.block_pairs_) {}

std::span<KeyedValue> Partitions::Reader::next() {
  while (true) {
    if (ranges_.empty()) {
      if (partition_ > last_key_ >> (64 - kRadixBits)) return {};
      begin_partition();
    }
    const KeyRange range = ranges_.back();
    ranges_.pop_back();
    if (!gather(range)) {
      split(range);
    } else if (!chunk_.empty()) {
      std::sort(chunk_.begin(), chunk_.end());
      return chunk_;
    }
  }
}

// Divides the next partition so that its parts fit, if keys are spread evenly.
void Partitions::Reader::begin_partition() {
  const uint64_t begin = uint64_t{partition_} << (64 - kRadixBits);
  const uint64_t first = std::max(first_key_, begin);
  const uint64_t last = std::min(last_key_, begin | kLastKey >> kRadixBits);
  const double width = static_cast<double>(last - first) + 1;
  const double num_pairs = static_cast<double>(all_.partitions_[partition_].num_pairs) * width /
                           static_cast<double>(uint64_t{1} << (64 - kRadixBits));
  const double parts = num_pairs / static_cast<double>(max_pairs_);
  const uint64_t num_parts = parts <= 1 ? 1 : static_cast<uint64_t>(parts * 1.25) + 1;
  const uint64_t step = (last - first) / num_parts;
  uint64_t end = last;
  for (uint64_t part = num_parts; step > 0 && part-- > 1; end = first + part * step - 1) {
    ranges_.push_back({first + part * step, end});
  }
  ranges_.push_back({first, end});
  ++partition_;
}

// Reads the pairs of a range; false: there are more than fit.
bool Partitions::Reader::gather(const KeyRange& range) {
  chunk_.clear();
  const bool is_one_key = range.first == range.last && too_large_ == nullptr;
  const size_t max_pairs = is_one_key ? all_.chunk_pairs_ : max_pairs_;
  const Partition& partition = all_.partitions_[range.first >> (64 - kRadixBits)];
  chunk_.reserve(std::min(max_pairs, static_cast<size_t>(partition.num_pairs)));
  for (const SpooledBlock& block : partition.blocks) {
    const std::span<KeyedValue> pairs(block_.data(), static_cast<size_t>(block.num_pairs));
    read_spool(all_.spool_, block.offset_bytes, std::as_writable_bytes(pairs));
    for (const KeyedValue& pair : pairs) {
      if (pair.key < range.first || pair.key > range.last || !keeps_(pair)) continue;
      if (chunk_.size() == max_pairs) return false;
      chunk_.push_back(pair);
    }
  }
  return true;
}

// Divides a range of which a chunk is full, in the middle of the keys in the chunk.
void Partitions::Reader::split(const KeyRange& range) {
  if (range.first == range.last) {
    if (too_large_ != nullptr) return too_large_->push_back(range.first);
    fail(ErrorCode::kUsage,
         "--memory is too small: more than {} of pairs that must be sorted together; expected "
         "several times as much, or fewer documents that are alike",
         format_bytes(static_cast<int64_t>(all_.chunk_pairs_) * kPairBytes));
  }
  const auto middle = chunk_.begin() + static_cast<std::ptrdiff_t>(chunk_.size() / 2);
  std::nth_element(chunk_.begin(), middle, chunk_.end());
  const uint64_t upper = middle->key > range.first ? middle->key : range.first + 1;
  ranges_.push_back({upper, range.last});
  ranges_.push_back({range.first, upper - 1});
}

}  // namespace skein
