// Which hashes were seen, and how often: open tables that are made empty for every count.
//
// Memory  8 bytes an entry, 16 with its count, for 2 to 8 times as many entries as hashes
// Cost    one probe or few a hash; clearing writes the table
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace skein {

// Of two hashes in this order.
inline uint64_t mix_hashes(uint64_t first, uint64_t second) {
  const auto product =
      static_cast<unsigned __int128>(first ^ 0x9fb21c651e98df25) * (second ^ 0xd6e8feb86659fd93);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

class HashSet {
 public:
  // Forgets all, and makes room for `num_hashes` different ones.
  void clear(size_t num_hashes) {
    const size_t size = std::bit_ceil(std::max<size_t>(4 * num_hashes, 16));
    if (hashes_.size() < size) hashes_.resize(size);
    std::fill_n(hashes_.begin(), size, kFree);
    shift_ = 64 - std::countr_zero(size);
    mask_ = size - 1;
  }

  // Whether `hash` was not there yet. It is now.
  bool add(uint64_t hash) {
    hash += hash == kFree;
    size_t i = (hash * 0x9e3779b97f4a7c15) >> shift_;
    for (; hashes_[i] != kFree; i = (i + 1) & mask_) {
      if (hashes_[i] == hash) return false;
    }
    hashes_[i] = hash;
    return true;
  }

 private:
  static constexpr uint64_t kFree = 0;

  std::vector<uint64_t> hashes_;
  int shift_ = 0;
  size_t mask_ = 0;
};

class HashCounts {
 public:
  struct HashCount {
    uint64_t hash = 0;
    uint32_t count = 0;  // 0: free
    uint32_t order = 0;  // among different hashes
  };

  // Forgets all, and makes room for `num_hashes` different ones.
  void clear(size_t num_hashes) {
    const size_t size = std::bit_ceil(std::max<size_t>(2 * num_hashes, 16));
    if (entries_.size() < size) entries_.resize(size);
    std::fill_n(entries_.begin(), size, HashCount{});
    shift_ = 64 - std::countr_zero(size);
    mask_ = size - 1;
    num_different_ = 0;
  }

  // The entry of `hash`, which has been seen once more.
  const HashCount& add(uint64_t hash) {
    size_t i = (hash * 0x9e3779b97f4a7c15) >> shift_;
    while (entries_[i].count > 0 && entries_[i].hash != hash) i = (i + 1) & mask_;
    HashCount& entry = entries_[i];
    if (entry.count++ == 0) {
      entry.hash = hash;
      entry.order = num_different_++;
    }
    return entry;
  }

 private:
  std::vector<HashCount> entries_;
  int shift_ = 0;
  size_t mask_ = 0;
  uint32_t num_different_ = 0;
};

}  // namespace skein
