#include "skein/bpe/word_cache.h"

#include <sys/mman.h>
#include <xxhash.h>

#include <new>

namespace skein::bpe {
namespace {

constexpr size_t kLongWords = size_t{1} << 15;
constexpr size_t kMaxLongBytes = size_t{4} << 20;

size_t place_of(std::string_view word) {
  return static_cast<size_t>(XXH3_64bits(word.data(), word.size())) & (kLongWords - 1);
}

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
}

void WordCache::Unmap::operator()(Short* table) const {
  ::munmap(table, kShortWords * sizeof(Short));
}

const std::vector<int32_t>& WordCache::find_long(std::string_view word) const {
  static const std::vector<int32_t> kNotFound;
  if (word.size() > kMaxLong) return kNotFound;
  const Long& found = long_[place_of(word)];
  return found.word == word ? found.ids : kNotFound;
}

void WordCache::keep(const Seen& seen) {
  const std::string_view word = seen.word;
  if (word.size() <= kMaxShort && scratch_.size() <= kMaxShortIds) {
    seen.place[1] = seen.place[0];
    seen.place[0].key = seen.key;
    seen.place[0].count = static_cast<int32_t>(scratch_.size());
    for (size_t i = 0; i < scratch_.size(); ++i) seen.place[0].ids[i] = scratch_[i];
  } else if (word.size() <= kMaxLong && !scratch_.empty()) {
    if (long_bytes_ > kMaxLongBytes) {
      long_.assign(kLongWords, {});
      long_bytes_ = 0;
    }
    long_[place_of(word)] = {std::string(word), scratch_};
    long_bytes_ += word.size() + scratch_.size() * sizeof(int32_t);
  }
}

}  // namespace skein::bpe
