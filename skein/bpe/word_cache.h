// The ids of words that were encoded before: text repeats itself, and merging is what costs.
//
// Short words (up to 15 bytes and 4 ids) lie in a table that grows from 1 to 32 MiB, one compare
// away; others in one that is emptied when it holds 4 MiB. What is in the tables changes how long
// encoding takes, never its result.
// Threads  one at a time
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "skein/base/machine/prefetch.h"

namespace skein::bpe {

// Ids on their way to a vector, many at a time.
class IdSink {
 public:
  explicit IdSink(std::vector<int32_t>& out) : out_(out) {}
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;
  ~IdSink() { flush(); }

  // Room for `count` ids, of which `advance` says how many there are.
  int32_t* room(size_t count) {
    if (size_ > kSize - count) flush();
    return ids_ + size_;
  }
  void advance(const int32_t* end) { size_ = static_cast<size_t>(end - ids_); }
  void append(const int32_t* ids, size_t count) {
    if (count > kSize - size_) flush();
    if (count > kSize) {
      out_.insert(out_.end(), ids, ids + count);
    } else {
      std::memcpy(ids_ + size_, ids, count * sizeof(int32_t));
      size_ += count;
    }
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

  // Appends the ids of `text`, word by word: end_of_word(at, end) says where the word that begins
  // at `at` ends, and encode(word, ids) finds its ids where they are not known.
  template <class EndOfWord, class Encode>
  void append(std::string_view text, EndOfWord end_of_word, IdSink& out, Encode&& encode) {
    const char* const end = text.data() + text.size();
    Seen seen[kAhead];
    for (const char* at = text.data(); at < end;) {
      const Short* const table = short_.get();
      const size_t sets = num_short_ - kWays;
      size_t count = 0;
      for (; count < kAhead && at < end; ++count) {
        const char* const next = end_of_word(at, end);
        const auto size = static_cast<size_t>(next - at);
        const Key key = size <= kMaxShort ? key_of(at, size, end) : Key{size, 0};
        seen[count] = {at, key, table + (hash_of(key) & sets)};
        prefetch(seen[count].set);
        at = next;
      }
      append_words({seen, count}, out, encode);
    }
  }

 private:
  static constexpr size_t kShortWords = size_t{1} << 20, kFirstShortWords = size_t{1} << 15;
  static constexpr size_t kMaxShort = 15, kMaxShortIds = 4, kMaxLong = 256;  // of a word
  static constexpr size_t kWays = 4;    // words that may lie in the same place: two cache lines
  static constexpr size_t kAhead = 32;  // words whose place in the table is fetched beforehand
  static constexpr int kCountShift = 60;

  struct Key {
    uint64_t low = 0, high = 0;  // the bytes, zeros, and in the last byte how many
  };
  struct Short {
    uint64_t low = 0, high = 0;  // a key, and in its highest four bits the number of ids
    int32_t ids[kMaxShortIds] = {};

    bool is(const Key& key) const {
      return ((low ^ key.low) | ((high ^ key.high) << (64 - kCountShift))) == 0;
    }
    Key key() const { return {low, high << (64 - kCountShift) >> (64 - kCountShift)}; }
  };
  // A longer word, or one of more ids: where its bytes and then its ids lie in long_text_.
  struct Long {
    uint64_t hash = 0;
    uint32_t begin = 0;
    uint16_t num_bytes = 0, num_ids = 0;
  };

  struct Seen {
    const char* begin;
    Key key;  // of a longer word {size, 0}, which no word in the table has
    const Short* set;

    bool is_short() const { return key.high != 0; }
    size_t size() const { return is_short() ? key.high >> 56 : key.low; }
    std::string_view word() const { return {begin, size()}; }
  };

  template <class Encode>
  void append_words(std::span<const Seen> words, IdSink& out, Encode&& encode) {
    int32_t* to = out.room(kAhead * kMaxShortIds);
    for (const Seen& seen : words) {
      const Short* found = seen.set;
      if (!found->is(seen.key)) [[unlikely]] {
        found = other_way(seen);
        if (found == nullptr) {
          out.advance(to);
          append_other(seen, out, encode);
          to = out.room(kAhead * kMaxShortIds);
          continue;
        }
      }
      std::memcpy(to, found->ids, sizeof(found->ids));
      to += found->high >> kCountShift;
    }
    out.advance(to);
  }

  static const Short* other_way(const Seen& seen) {
    for (size_t way = 1; way < kWays; ++way) {
      if (seen.set[way].is(seen.key)) return &seen.set[way];
    }
    return nullptr;
  }

  template <class Encode>
  void append_other(const Seen& seen, IdSink& out, Encode&& encode) {
    const std::span<const int32_t> ids = find_long(seen.word());
    if (!ids.empty()) return out.append(ids.data(), ids.size());
    scratch_.clear();
    encode(seen.word(), scratch_);
    out.append(scratch_.data(), scratch_.size());
    keep(seen);
  }

  static Key key_of(const char* word, size_t size, const char* end) {
    uint64_t halves[2] = {0, 0};
    if (end - word >= 16) {
      std::memcpy(halves, word, 16);
      halves[0] &= kMasks[size][0];
      halves[1] &= kMasks[size][1];
    } else {
      std::memcpy(halves, word, size);
    }
    return {halves[0], halves[1] | uint64_t{size} << 56};
  }
  static size_t hash_of(const Key& key) {
    const uint64_t mixed = (key.low ^ key.high * 0xff51afd7ed558ccd) * 0x9e3779b97f4a7c15;
    return static_cast<size_t>(mixed >> 40);
  }
  std::span<const int32_t> find_long(std::string_view word) const;
  void keep(const Seen& seen);
  void keep_short(const Key& key);
  void keep_long(std::string_view word);
  void grow();

  static const uint64_t kMasks[16][2];

  struct Unmap {
    void operator()(Short* table) const;
  };
  std::unique_ptr<Short[], Unmap> short_;
  size_t num_short_ = kFirstShortWords;  // in use, of kShortWords
  size_t next_way_ = 0;                  // that is replaced
  std::vector<Long> long_;               // a power of two of them, at most half full
  std::vector<int32_t> long_text_;
  size_t num_long_ = 0;
  std::vector<int32_t> scratch_;
};

}  // namespace skein::bpe
