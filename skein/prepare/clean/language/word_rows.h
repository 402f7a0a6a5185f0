// The rows of words that were seen before: text repeats itself, and hashing n-grams is what costs.
// (bpe/word_cache.h is for words of 4 ids; these have 20.)
//
// Memory   18 MB at most: 2 MB, and what the words need; when it is full, all are forgotten
// Cost     two places in memory a word, which are fetched beforehand
// Threads  one at a time
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "skein/base/machine/prefetch.h"
#include "skein/prepare/clean/words/hash_counts.h"

namespace skein {

class WordRows {
 public:
  static constexpr size_t kMaxSize = 64;  // of the words that are kept, in bytes
  static constexpr size_t kChunk = 16;    // bytes that are looked at together
  static constexpr size_t kPadding = 32;  // rows behind those of a word that may be read

  struct WordKey {
    std::string_view word;
    uint64_t low = 0, high = 0;  // its first chunk, and zeros
    uint64_t hash = 0;
  };
  // Of a word of 1 to kMaxSize bytes, which may be read in chunks.
  static WordKey key_of(std::string_view word) {
    WordKey key{.word = word};
    size_t begin = 0;
    if (word.size() > kChunk) {
      std::memcpy(&key.low, word.data(), 8);
      std::memcpy(&key.high, word.data() + 8, 8);
      for (; begin + kChunk < word.size(); begin += kChunk) {
        uint64_t chunk[2];
        std::memcpy(chunk, word.data() + begin, kChunk);
        key.hash = mix_hashes(key.hash ^ chunk[0], chunk[1]);
      }
    }
    const WordChunk last = last_chunk(word.data() + begin, word.size() - begin);
    if (begin == 0) key.low = last.low, key.high = last.high;
    key.hash = mix_hashes(key.hash ^ last.low, last.high + word.size());
    return key;
  }

  WordRows() : slots_(kNumSlots), kept_(kFirstSize) {}

  void prefetch_slot(const WordKey& key) const { prefetch(&slots_[slot_of(key.hash)]); }
  void prefetch_rows(const WordKey& key) const {
    const int32_t* kept = &kept_[slots_[slot_of(key.hash)].where];
    prefetch(kept);
    prefetch(kept + 16);
  }
  // The rows, until something is kept; without data where the word is not there.
  std::span<const int32_t> find(const WordKey& key) const {
    const WordSlot& slot = slots_[index_of(key)];
    return slot.where == 0 ? std::span<const int32_t>() : rows_at(slot.where);
  }
  // Keeps those of a word that is not there, fewer than 65536.
  void keep(const WordKey& key, const std::vector<int32_t>& rows);

 private:
  static constexpr size_t kNumSlots = size_t{1} << 18, kMaxWords = kNumSlots / 2;
  static constexpr size_t kFirstSize = size_t{1} << 18, kMaxKept = size_t{1} << 22;
  static constexpr size_t kHeader = 5;  // the number of rows and the word's size, its first chunk

  struct WordSlot {
    uint32_t tag = 0;    // of the word's hash
    uint32_t where = 0;  // in kept_; 0: free
  };
  struct WordChunk {
    uint64_t low, high;
  };

  // The first `size` of 16 bytes, and zeros.
  static WordChunk last_chunk(const char* bytes, size_t size) {
    static constexpr uint8_t kMask[2 * kChunk] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                  255, 255, 255, 255, 255, 255, 255, 255};
    WordChunk chunk{}, mask{};
    std::memcpy(&chunk, bytes, kChunk);
    std::memcpy(&mask, kMask + kChunk - size, kChunk);
    return {chunk.low & mask.low, chunk.high & mask.high};
  }
  static size_t slot_of(uint64_t hash) { return hash / (UINT64_MAX / kNumSlots + 1); }
  static size_t rest_size(size_t size) { return size > kChunk ? (size - kChunk + 3) / 4 : 0; }

  std::span<const int32_t> rows_at(size_t where) const {
    const auto header = static_cast<uint32_t>(kept_[where]);
    return {&kept_[where + kHeader + rest_size(header & 0xffff)], header >> 16};
  }
  bool is_at(size_t where, const WordKey& key) const {
    const int32_t* kept = &kept_[where];
    WordChunk first{};
    std::memcpy(&first, kept + 1, kChunk);
    const size_t size = key.word.size();
    return ((first.low ^ key.low) | (first.high ^ key.high)) == 0 &&
           (static_cast<uint32_t>(*kept) & 0xffff) == size &&
           (size <= kChunk ||
            std::memcmp(kept + kHeader, key.word.data() + kChunk, size - kChunk) == 0);
  }
  // Of the slot of the word, or of a free one for it.
  size_t index_of(const WordKey& key) const {
    size_t i = slot_of(key.hash);
    for (; slots_[i].where != 0; i = (i + 1) % kNumSlots) {
      if (slots_[i].tag == static_cast<uint32_t>(key.hash) && is_at(slots_[i].where, key)) break;
    }
    return i;
  }
  void forget();

  std::vector<WordSlot> slots_;
  std::vector<int32_t> kept_;  // of each word: a header, the rest of its bytes, its rows
  size_t num_kept_ = 1, num_words_ = 0;
};

}  // namespace skein
