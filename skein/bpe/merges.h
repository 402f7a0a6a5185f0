// Byte-pair encoding: which neighbours become one symbol, and in which order.
//
// Rule     of all neighbouring pairs that can merge, the one of the lowest rank merges, the
//          leftmost of equal ranks; until none can
// Cost     n log n for n symbols; a look-up in a table of all pairs for each new pair
// Source   Sennrich et al., "Neural machine translation of rare words with subword units", ACL 2016
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace skein::bpe {

class Merges {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Merge {
    uint32_t rank = kNone;
    int32_t symbol = -1;  // what both become
  };

  explicit Merges(size_t expected = 0);

  // A pair that is there already keeps the lower rank.
  void add(int32_t left, int32_t right, Merge merge);
  Merge find(int32_t left, int32_t right) const;
  size_t size() const { return size_; }

  // Merges what can be, in place.
  void apply(std::vector<int32_t>& symbols) const;

 private:
  struct Slot {
    uint64_t pair = UINT64_MAX;
    Merge merge;
  };

  size_t home(uint64_t pair) const;
  void grow(size_t num_slots);
  void apply_to_few(std::vector<int32_t>& symbols) const;
  void apply_to_many(std::vector<int32_t>& symbols) const;

  std::vector<Slot> slots_;  // a power of two of them, at most half full
  size_t size_ = 0;
};

}  // namespace skein::bpe
