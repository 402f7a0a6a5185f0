// The ids of words that were encoded before: text repeats itself, and merging is what costs.
//
// Short words (up to 15 bytes and 3 ids) lie in a table of 1 MiB, one compare away; others in one
// that is emptied when it holds 4 MiB. What is in the tables changes how long encoding takes,
// never its result.
// Threads  one at a time
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace skein::bpe {

// Ids on their way to a vector, many at a time.
class IdSink {
 public:
  explicit IdSink(std::vector<int32_t>& out) : out_(out) {}
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;
  ~IdSink() { flush(); }

  // Room for 4 ids, of which `advance` says how many there are.
  int32_t* room() {
    if (size_ > kSize - 4) flush();
    return ids_ + size_;
  }
  void advance(size_t count) { size_ += count; }
  void append(const int32_t* ids, size_t count) {
    flush();
    out_.insert(out_.end(), ids, ids + count);
  }
  void flush() {
    out_.insert(out_.end(), ids_, ids_ + size_);
    size_ = 0;
  }

 private:
  static constexpr size_t kSize = 1024;
  std::vector<int32_t>& out_;
  int32_t ids_[kSize];
  size_t size_ = 0;
};

class WordCache {
 public:
  WordCache();

  // Appends the ids of `word`, which is not empty and lies in a text that ends at `end`;
  // encode(word, ids) finds them where they are not known.
  template <class Encode>
  void append(std::string_view word, const char* end, IdSink& out, Encode&& encode) {
    if (word.size() <= kMaxShort) {
      const Key key = key_of(word, end);
      Short* const pair = &short_[home(key)];  // two words may lie here, the newer one first
      for (const Short* found : {pair, pair + 1}) {
        if (found->key.low != key.low || found->key.high != key.high) continue;
        std::memcpy(out.room(), found->ids, sizeof(found->ids));
        return out.advance(static_cast<size_t>(found->count));
      }
    }
    const std::vector<int32_t>& ids = find_long(word);
    if (!ids.empty()) return out.append(ids.data(), ids.size());
    scratch_.clear();
    encode(word, scratch_);
    out.append(scratch_.data(), scratch_.size());
    keep(word, end);
  }

 private:
  static constexpr size_t kMaxShort = 15, kMaxShortIds = 3, kMaxLong = 256;  // of a word

  struct Key {
    uint64_t low = 0, high = 0;  // the bytes, zeros, and in the last byte how many
  };
  struct Short {
    Key key;
    int32_t ids[kMaxShortIds] = {};
    int32_t count = 0;
  };
  struct Long {
    std::string word;
    std::vector<int32_t> ids;
  };

  static Key key_of(std::string_view word, const char* end) {
    uint64_t halves[2] = {0, 0};
    if (end - word.data() >= 16) {
      std::memcpy(halves, word.data(), 16);
      halves[0] &= kMasks[word.size()][0];
      halves[1] &= kMasks[word.size()][1];
    } else {
      std::memcpy(halves, word.data(), word.size());
    }
    return {halves[0], halves[1] | static_cast<uint64_t>(word.size()) << 56};
  }
  size_t home(const Key& key) const {
    const uint64_t mixed = (key.low ^ key.high * 0xff51afd7ed558ccd) * 0x9e3779b97f4a7c15;
    return static_cast<size_t>(mixed >> 40) & (short_.size() - 2);
  }
  const std::vector<int32_t>& find_long(std::string_view word) const;
  void keep(std::string_view word, const char* end);

  static const uint64_t kMasks[16][2];

  std::vector<Short> short_;
  std::vector<Long> long_;
  size_t long_bytes_ = 0;
  std::vector<int32_t> scratch_;
};

}  // namespace skein::bpe
