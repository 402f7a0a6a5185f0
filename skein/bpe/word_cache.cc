#include "skein/bpe/word_cache.h"

#include <xxhash.h>

namespace skein::bpe {
namespace {

constexpr size_t kShortWords = size_t{1} << 15, kLongWords = size_t{1} << 14;
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

WordCache::WordCache() : short_(kShortWords), long_(kLongWords) {}

const std::vector<int32_t>& WordCache::find_long(std::string_view word) const {
  static const std::vector<int32_t> kNotFound;
  if (word.size() > kMaxLong) return kNotFound;
  const Long& found = long_[place_of(word)];
  return found.word == word ? found.ids : kNotFound;
}

void WordCache::keep(std::string_view word, const char* end) {
  if (word.size() <= kMaxShort && scratch_.size() <= kMaxShortIds) {
    const Key key = key_of(word, end);
    Short* const pair = &short_[home(key)];
    pair[1] = pair[0];
    pair[0].key = key;
    pair[0].count = static_cast<int32_t>(scratch_.size());
    for (size_t i = 0; i < scratch_.size(); ++i) pair[0].ids[i] = scratch_[i];
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
