// The ids of words that were encoded before: text repeats itself, and merging is what costs.
//
// Short words (up to 15 bytes and 3 ids) lie in a table of 16 MiB, one compare away; others in one
// that is emptied when it holds 4 MiB. What is in the tables changes how long encoding takes,
// never its result.
// Threads  one at a time
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
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

  // Appends the ids of `text`, word by word: end_of_word(at, end) says where the word that begins
  // at `at` ends, and encode(word, ids) finds its ids where they are not known.
  template <class EndOfWord, class Encode>
  void append(std::string_view text, EndOfWord&& end_of_word, IdSink& out, Encode&& encode) {
    const char* const end = text.data() + text.size();
    Seen seen[kAhead];
    for (const char* at = text.data(); at < end;) {
      size_t count = 0;
      for (; count < kAhead && at < end; ++count) {
        const char* const next = end_of_word(at, end);
        seen[count].word = {at, static_cast<size_t>(next - at)};
        if (seen[count].word.size() <= kMaxShort) {
          seen[count].key = key_of(seen[count].word, end);
          seen[count].place = &short_[home(seen[count].key)];
          __builtin_prefetch(seen[count].place);
        }
        at = next;
      }
      for (size_t i = 0; i < count; ++i) append_word(seen[i], out, encode);
    }
  }

 private:
  static constexpr size_t kShortWords = size_t{1} << 19;
  static constexpr size_t kMaxShort = 15, kMaxShortIds = 3, kMaxLong = 256;  // of a word
  static constexpr size_t kAhead = 32;  // words whose place in the table is fetched beforehand

  struct Key {
    uint64_t low = 0, high = 0;  // the bytes, zeros, and in the last byte how many
    bool operator==(const Key& other) const {
      return ((low ^ other.low) | (high ^ other.high)) == 0;
    }
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

  struct Seen {
    std::string_view word;
    Key key;
    Short* place;  // of two words, the newer one first
  };

  template <class Encode>
  void append_word(const Seen& seen, IdSink& out, Encode&& encode) {
    if (seen.word.size() <= kMaxShort) {
      const bool is_first = seen.place[0].key == seen.key;
      const Short& found = seen.place[is_first ? 0 : 1];
      if (is_first | (found.key == seen.key)) {
        std::memcpy(out.room(), found.ids, sizeof(found.ids));
        return out.advance(static_cast<size_t>(found.count));
      }
    }
    const std::vector<int32_t>& ids = find_long(seen.word);
    if (!ids.empty()) return out.append(ids.data(), ids.size());
    scratch_.clear();
    encode(seen.word, scratch_);
    out.append(scratch_.data(), scratch_.size());
    keep(seen);
  }

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
    return static_cast<size_t>(mixed >> 40) & (kShortWords - 2);
  }
  const std::vector<int32_t>& find_long(std::string_view word) const;
  void keep(const Seen& seen);

  static const uint64_t kMasks[16][2];

  struct Unmap {
    void operator()(Short* table) const;
  };
  std::unique_ptr<Short[], Unmap> short_;
  std::vector<Long> long_;
  size_t long_bytes_ = 0;
  std::vector<int32_t> scratch_;
};

}  // namespace skein::bpe
