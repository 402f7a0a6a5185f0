// The normalizer of a SentencePiece model is a double-array trie (Darts-clone) from byte sequences
// to offsets in a blob of replacements: [u32 trie bytes][trie units, u32 each][blob].
// Source: https://github.com/s-yata/darts-clone (unit layout), sentencepiece/src/normalizer.cc
#include <algorithm>
#include <cstring>
#include <vector>

#include "skein/base/error.h"
#include "skein/data/tokenizer/sentencepiece/sentencepiece_model.h"

namespace skein {
namespace {

constexpr int kMaxDepth = 256;   // bytes of the longest rule; real ones have under 64
constexpr int kMaxMatches = 32;  // rules that match one text: the size of libsentencepiece's array

struct Unit {
  uint32_t bits;
  bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  uint32_t value() const { return bits & 0x7fffffffu; }
  uint32_t label() const { return bits & 0x800000ffu; }
  uint32_t offset() const { return (bits >> 10) << ((bits & 0x200u) >> 6); }
};

class TrieCheck {
 public:
  TrieCheck(std::vector<Unit> units, size_t blob_bytes, const std::string& where)
      : units_(std::move(units)),
        matches_below_(units_.size(), kUnseen),
        blob_bytes_(blob_bytes),
        where_(where) {}

  // The most rules that match along any path below unit `index`.
  int visit(size_t index, int depth) {
    if (matches_below_[index] == kOpen || depth > kMaxDepth) damaged("a rule without end");
    if (matches_below_[index] != kUnseen) return matches_below_[index];
    matches_below_[index] = kOpen;
    const size_t base = index ^ units_[index].offset();
    if ((base | 0xff) >= units_.size()) damaged("a step out of the trie");
    int here = 0, below = 0;
    // The root's leaf would be the empty rule, which no search considers.
    if (depth > 0 && units_[index].has_leaf()) {
      if (units_[base].value() >= blob_bytes_) damaged("a replacement out of the table");
      here = 1;
    }
    for (uint32_t label = 0; label < 256; ++label) {
      const size_t child = base ^ label;
      if (units_[child].label() == label) below = std::max(below, visit(child, depth + 1));
    }
    if (here + below > kMaxMatches) damaged("too many rules for one text");
    return matches_below_[index] = here + below;
  }

 private:
  static constexpr int kUnseen = -1;
  static constexpr int kOpen = -2;

  [[noreturn]] void damaged(const char* found) const {
    fail(ErrorCode::kCorrupt, "{}: the normalizer's rules are damaged: {}", where_, found);
  }

  std::vector<Unit> units_;
  std::vector<int> matches_below_;
  size_t blob_bytes_;
  const std::string& where_;
};

}  // namespace

void check_charsmap(std::string_view charsmap, const std::string& where) {
  uint32_t trie_bytes = 0;
  if (charsmap.size() > sizeof(trie_bytes)) {
    std::memcpy(&trie_bytes, charsmap.data(), sizeof(trie_bytes));
    charsmap.remove_prefix(sizeof(trie_bytes));
  }
  if (trie_bytes == 0 || trie_bytes % sizeof(Unit) != 0 || trie_bytes >= charsmap.size()) {
    fail(ErrorCode::kCorrupt, "{}: the normalizer's trie has {} of {} bytes", where, trie_bytes,
         charsmap.size());
  }
  std::vector<Unit> units(trie_bytes / sizeof(Unit));
  std::memcpy(units.data(), charsmap.data(), trie_bytes);
  TrieCheck(std::move(units), charsmap.size() - trie_bytes, where).visit(0, 0);
}

}  // namespace skein
