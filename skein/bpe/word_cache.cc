#include "skein/bpe/word_cache.h"

#include <sys/mman.h>
#include <xxhash.h>

#include <algorithm>
#include <new>
#include <utility>

namespace skein::bpe {
namespace {

constexpr size_t kLongWords = size_t{1} << 16;
constexpr size_t kMaxLongIds = size_t{1} << 20;  // 4 MiB, of words' bytes and their ids

size_t ids_for(size_t num_bytes) { return (num_bytes + sizeof(int32_t) - 1) / sizeof(int32_t); }

constexpr uint64_t ones(int bytes) {
  return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
}

}  // namespace

// [n]: the first n bytes of 16, little-endian
const uint64_t WordCache::kMasks[16][2] = {
    {ones(0), 0},       {ones(1), 0},       {ones(2), 0},       {ones(3), 0},
    {ones(4), 0},       {ones(5), 0},       {ones(6), 0},       {ones(7), 0},
    {ones(8), 0},       {ones(8), ones(1)}, {ones(8), ones(2)}, {ones(8), ones(3)},
    {ones(8), ones(4)}, {ones(8), ones(5)}, {ones(8), ones(6)}, {ones(8), ones(7)}};

WordCache::WordCache() : long_(kLongWords) {
  void* const memory = ::mmap(nullptr, kShortWords * sizeof(Short), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, kShortWords * sizeof(Short), MADV_HUGEPAGE);  // optional: only for speed
  short_.reset(static_cast<Short*>(memory));  // zeros: words of no bytes, which nobody looks for
  long_text_.reserve(kMaxLongIds);
}

void WordCache::Unmap::operator()(Short* table) const {
  ::munmap(table, kShortWords * sizeof(Short));
}

std::span<const int32_t> WordCache::find_long(std::string_view word) const {
  const uint64_t hash = XXH3_64bits(word.data(), word.size());
  for (size_t at = hash & (kLongWords - 1); long_[at].num_bytes != 0;
       at = (at + 1) & (kLongWords - 1)) {
    const Long& found = long_[at];
    if (found.hash != hash || found.num_bytes != word.size()) continue;
    const int32_t* const text = &long_text_[found.begin];
    if (std::memcmp(text, word.data(), word.size()) != 0) continue;
    return {text + ids_for(word.size()), found.num_ids};
  }
  return {};
}

void WordCache::keep(const Seen& seen) {
  if (seen.is_short() && scratch_.size() <= kMaxShortIds) {
    keep_short(seen.key);
  } else if (seen.size() <= kMaxLong && !scratch_.empty()) {
    keep_long(seen.word());
  }
}

void WordCache::keep_short(const Key& key) {
  const auto free_way = [&](Short* set) {
    size_t way = 0;
    while (way < kWays && set[way].high != 0) ++way;
    return way;
  };
  Short* set = &short_[hash_of(key) & (num_short_ - kWays)];
  size_t way = free_way(set);
  for (; way == kWays && num_short_ < kShortWords; way = free_way(set)) {
    grow();
    set = &short_[hash_of(key) & (num_short_ - kWays)];
  }
  if (way == kWays) way = next_way_++ % kWays;
  set[way].low = key.low;
  set[way].high = key.high | uint64_t{scratch_.size()} << kCountShift;
  std::copy(scratch_.begin(), scratch_.end(), set[way].ids);
}

// Twice as many sets: what is in one goes on to lie there, or as far behind as there were.
void WordCache::grow() {
  const size_t num_before = num_short_;
  num_short_ *= 2;
  for (size_t begin = 0; begin < num_before; begin += kWays) {
    size_t num_stay = 0, num_go = 0;
    for (size_t way = 0; way < kWays; ++way) {
      const Short word = std::exchange(short_[begin + way], {});
      if (word.high == 0) continue;
      const size_t set = hash_of(word.key()) & (num_short_ - kWays);
      short_[set + (set == begin ? num_stay++ : num_go++)] = word;
    }
  }
}

void WordCache::keep_long(std::string_view word) {
  const size_t num_ints = ids_for(word.size()) + scratch_.size();
  if (2 * num_long_ >= kLongWords || long_text_.size() + num_ints > kMaxLongIds) {
    long_.assign(kLongWords, {});
    long_text_.clear();
    num_long_ = 0;
  }
  const uint64_t hash = XXH3_64bits(word.data(), word.size());
  size_t at = hash & (kLongWords - 1);
  while (long_[at].num_bytes != 0) at = (at + 1) & (kLongWords - 1);
  const size_t begin = long_text_.size();
  long_[at] = {hash, static_cast<uint32_t>(begin), static_cast<uint16_t>(word.size()),
               static_cast<uint16_t>(scratch_.size())};
  ++num_long_;
  long_text_.resize(begin + ids_for(word.size()));
  std::memcpy(&long_text_[begin], word.data(), word.size());
  long_text_.insert(long_text_.end(), scratch_.begin(), scratch_.end());
}

}  // namespace skein::bpe
