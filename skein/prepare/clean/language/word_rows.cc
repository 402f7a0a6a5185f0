#include "skein/prepare/clean/language/word_rows.h"

#include <algorithm>

namespace skein {

void WordRows::keep(const WordKey& key, const std::vector<int32_t>& rows) {
  const size_t size = key.word.size(), rest = rest_size(size);
  const size_t needed = kHeader + rest + rows.size() + kPadding;
  if (num_words_ == kMaxWords || num_kept_ + needed > kMaxKept) forget();
  if (num_kept_ + needed > kept_.size()) {
    kept_.resize(std::min(2 * kept_.size() + needed, kMaxKept));
  }
  slots_[index_of(key)] = {static_cast<uint32_t>(key.hash), static_cast<uint32_t>(num_kept_)};
  int32_t* kept = &kept_[num_kept_];
  *kept = static_cast<int32_t>(rows.size() << 16 | size);
  std::memcpy(kept + 1, &key.low, 8);
  std::memcpy(kept + 3, &key.high, 8);
  if (rest > 0) std::memcpy(kept + kHeader, key.word.data() + kChunk, size - kChunk);
  std::copy(rows.begin(), rows.end(), kept + kHeader + rest);
  num_kept_ += needed - kPadding;
  ++num_words_;
}

void WordRows::forget() {
  std::fill(slots_.begin(), slots_.end(), WordSlot{});
  num_kept_ = 1;
  num_words_ = 0;
}

}  // namespace skein
